import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Bug } from '../../core/errors.js';
import { PACKAGE_ROOT } from '../../core/package-root.js';

/** A topic as config/topics.json lists it. */
export interface TopicEntry {
  readonly topicName: string;
  readonly readQueueNums: number;
  readonly writeQueueNums: number;
  /** 4 allows reads, 2 writes, 6 both. */
  readonly perm: number;
  readonly attributes: { readonly '+message.type': 'NORMAL' | 'DELAY' | 'TRANSACTION' | 'FIFO' };
}

/** A consumer group as config/groups.json lists it. A message is tried `retryMaxTimes` + 1 times. */
export interface GroupEntry {
  readonly groupName: string;
  readonly retryMaxTimes: number;
}

export interface TopicLists {
  readonly topics: readonly TopicEntry[];
  readonly groups: readonly GroupEntry[];
}

const CONFIG_DIR = fileURLToPath(new URL('config/', PACKAGE_ROOT));

export function readTopicLists(configDir = CONFIG_DIR): TopicLists {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(configDir, file), 'utf8'));
  const lists = { topics: read('topics.json') as TopicEntry[], groups: read('groups.json') as GroupEntry[] };
  assertTopicLists(lists);
  return lists;
}

/**
 * Checks that every topic has a type: a topic without a type takes only NORMAL messages. RocketMQ's admin tool skips a
 * whole list, and reports success, if an entry equals the stored topic. An entry with `+message.type` never does.
 */
export function assertTopicLists({ topics }: TopicLists): void {
  for (const { topicName, attributes } of topics) {
    if (!attributes?.['+message.type']) throw new Bug(`topic ${topicName} lacks the attribute +message.type`);
  }
}

/** Number of retries, as for our own groups of order events. */
export const OWN_GROUP_RETRIES = 16;
const QUEUES_OF_GROUP = {
  readQueueNums: 1,
  writeQueueNums: 1,
  perm: 6,
  attributes: { '+message.type': 'NORMAL' },
} as const;

/** Returns the lists, extended by the group of an external program and by the two topics that the group needs. */
export function withGroup({ topics, groups }: TopicLists, groupName: string): TopicLists {
  const own = [`%RETRY%${groupName}`, `%DLQ%${groupName}`];
  return {
    topics: [...topics, ...own.map((topicName) => ({ topicName, ...QUEUES_OF_GROUP }))],
    groups: [...groups, { groupName, retryMaxTimes: OWN_GROUP_RETRIES }],
  };
}

/** A topic as a broker has stored it. */
export interface TopicConfig extends Omit<TopicEntry, 'attributes'> {
  readonly attributes: Readonly<Record<string, string>>;
}

/** A consumer group as a broker has stored it. */
export interface GroupConfig extends GroupEntry {
  /** If false, no consumer gets messages. */
  readonly consumeEnable?: boolean;
}

/** Topics and groups that a broker has stored, by name. */
export interface StoredLists {
  readonly topics: Readonly<Record<string, TopicConfig>>;
  readonly groups: Readonly<Record<string, GroupConfig>>;
}

/** Returns what a broker lacks or has stored differently. Other topics and groups do not matter. */
export function missingFrom(stored: StoredLists, wanted: TopicLists): TopicLists {
  const topics = wanted.topics.filter((topic) => {
    const found = stored.topics[topic.topicName];
    return (
      found === undefined ||
      found.readQueueNums !== topic.readQueueNums ||
      found.writeQueueNums !== topic.writeQueueNums ||
      found.perm !== topic.perm ||
      found.attributes?.['message.type'] !== topic.attributes['+message.type']
    );
  });
  const groups = wanted.groups.filter(
    ({ groupName, retryMaxTimes }) => stored.groups[groupName]?.retryMaxTimes !== retryMaxTimes,
  );
  return { topics, groups };
}

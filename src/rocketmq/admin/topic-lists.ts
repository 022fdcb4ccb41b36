import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Bug } from '../../core/errors.js';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';

/** One topic as the RocketMQ admin tool takes it. */
export interface TopicEntry {
  readonly topicName: string;
  readonly readQueueNums: number;
  readonly writeQueueNums: number;
  readonly perm: number;
  readonly attributes: { readonly '+message.type': 'NORMAL' | 'DELAY' | 'TRANSACTION' | 'FIFO' };
}

/** One consumer group as the RocketMQ admin tool takes it. A message is tried `retryMaxTimes` + 1 times. */
export interface GroupEntry {
  readonly groupName: string;
  readonly retryMaxTimes: number;
}

export interface TopicLists {
  readonly topics: readonly TopicEntry[];
  readonly groups: readonly GroupEntry[];
}

/** Reads config/topics.json and config/groups.json. */
export function readTopicLists(configDir = join(REPO_DIR, 'config')): TopicLists {
  const read = (file: string): unknown => JSON.parse(readFileSync(join(configDir, file), 'utf8'));
  const lists = { topics: read('topics.json') as TopicEntry[], groups: read('groups.json') as GroupEntry[] };
  assertTopicLists(lists);
  return lists;
}

/**
 * RocketMQ skips a whole list, and reports success, when one entry equals the stored topic; an entry with
 * `+message.type` never does. So an entry without it would let other topics silently go missing.
 */
export function assertTopicLists({ topics }: TopicLists): void {
  for (const { topicName, attributes } of topics) {
    if (!attributes?.['+message.type']) throw new Bug(`topic ${topicName} lacks the attribute +message.type`);
  }
}

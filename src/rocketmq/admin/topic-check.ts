import type { GroupConfig, TopicConfig } from './broker-state.js';
import type { TopicLists } from './topic-lists.js';

/** What a broker has stored, by name. */
export interface StoredLists {
  readonly topics: Readonly<Record<string, TopicConfig>>;
  readonly groups: Readonly<Record<string, GroupConfig>>;
}

/** Says in short what a broker lacks or has differently; empty when all is as wanted. Other topics do not matter. */
export function missingFrom(stored: StoredLists, wanted: TopicLists): string[] {
  const topics = wanted.topics
    .filter((topic) => {
      const found = stored.topics[topic.topicName];
      return (
        found === undefined ||
        found.readQueueNums !== topic.readQueueNums ||
        found.writeQueueNums !== topic.writeQueueNums ||
        found.perm !== topic.perm ||
        found.attributes?.['message.type'] !== topic.attributes['+message.type']
      );
    })
    .map(({ topicName }) => `topic ${topicName}`);
  const groups = wanted.groups
    .filter(({ groupName, retryMaxTimes }) => stored.groups[groupName]?.retryMaxTimes !== retryMaxTimes)
    .map(({ groupName }) => `group ${groupName}`);
  return [...topics, ...groups];
}

import type { GroupConfig, TopicConfig } from './broker-state.js';
import type { TopicLists } from './topic-lists.js';

/** What a broker has stored, by name. */
export interface StoredLists {
  readonly topics: Readonly<Record<string, TopicConfig>>;
  readonly groups: Readonly<Record<string, GroupConfig>>;
}

/** What a broker lacks or has differently. Other topics and groups do not matter. */
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

import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DEAD_LETTERS, GROUPS, SHADOW_GROUP, TOPICS, WRITER_RETRIES_MAX } from '../../src/core/topics.js';

interface TopicEntry {
  topicName: string;
  attributes: Record<string, string>;
}
interface GroupEntry {
  groupName: string;
  retryMaxTimes: number;
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`../../config/${name}`, import.meta.url), 'utf8'));
const topics = read('topics.json') as TopicEntry[];
const groups = read('groups.json') as GroupEntry[];

const workers = [...Object.values(GROUPS), SHADOW_GROUP];
const collectors = Object.values(DEAD_LETTERS).map(({ collector }) => collector);

describe('guard: topics and groups in code and configuration', () => {
  it('create exactly the topics of the code, and the retry and dead-letter topics of each group', () => {
    const expected = [
      ...Object.values(TOPICS),
      ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
      ...[...workers, ...collectors].map((group) => `%RETRY%${group}`),
    ];
    expect(topics.map(({ topicName }) => topicName)).to.have.members(expected);
  });

  it('give every topic the type that its producer needs', () => {
    const types = Object.fromEntries(topics.map((topic) => [topic.topicName, topic.attributes['+message.type']]));
    expect(types).to.include({
      [TOPICS.purchase]: 'TRANSACTION',
      [TOPICS.redrive]: 'NORMAL',
      [TOPICS.paymentDeadline]: 'DELAY',
      [TOPICS.orderEvent]: 'NORMAL',
    });
    // Without a type, an entry could equal the stored topic, and the whole list would be skipped.
    expect(Object.values(types)).not.to.include(undefined);
  });

  it('create exactly the groups of the code', () => {
    expect(groups.map(({ groupName }) => groupName)).to.have.members([...workers, ...collectors]);
  });

  it('make the writer groups give up after the number of retries that the code expects', () => {
    const retries = Object.fromEntries(groups.map((group) => [group.groupName, group.retryMaxTimes]));
    expect(retries).to.include({
      [GROUPS.writer]: WRITER_RETRIES_MAX,
      [GROUPS.redriveWriter]: WRITER_RETRIES_MAX,
    });
  });
});

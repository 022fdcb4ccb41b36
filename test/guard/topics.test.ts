import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { DEAD_LETTERS, GROUPS, TOPICS, WRITER_RETRIES_MAX } from '../../src/core/topics.js';

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

const workers = Object.values(GROUPS);
const collectors = Object.values(DEAD_LETTERS).map(({ collector }) => collector);

describe('guard: topics and groups of code and config are the same', () => {
  it('every topic of the code is created, and no other, with the retry and dead-letter topics of each group', () => {
    const expected = [
      ...Object.values(TOPICS),
      ...Object.values(DEAD_LETTERS).map(({ topic }) => topic),
      ...[...workers, ...collectors].map((group) => `%RETRY%${group}`),
    ];
    expect(topics.map(({ topicName }) => topicName)).to.have.members(expected);
  });

  it('every topic has the type that its producer needs', () => {
    const types = Object.fromEntries(topics.map((topic) => [topic.topicName, topic.attributes['+message.type']]));
    expect(types).to.include({
      [TOPICS.purchase]: 'TRANSACTION',
      [TOPICS.redrive]: 'NORMAL',
      [TOPICS.paymentDeadline]: 'DELAY',
      [TOPICS.orderEvent]: 'NORMAL',
    });
    // An entry without a type could equal the stored topic, and then the whole list would be skipped.
    expect(Object.values(types)).not.to.include(undefined);
  });

  it('every group of the code is created, and no other', () => {
    expect(groups.map(({ groupName }) => groupName)).to.have.members([...workers, ...collectors]);
  });

  it('the writer groups give up after the retries that the code counts on', () => {
    const retries = Object.fromEntries(groups.map((group) => [group.groupName, group.retryMaxTimes]));
    expect(retries).to.include({
      [GROUPS.writer]: WRITER_RETRIES_MAX,
      [GROUPS.redriveWriter]: WRITER_RETRIES_MAX,
    });
  });
});

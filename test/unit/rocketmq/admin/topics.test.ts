import { expect } from 'chai';
import {
  missingFrom,
  type StoredLists,
  assertTopicLists,
  readTopicLists,
  type TopicLists,
  withGroup,
} from '../../../../src/rocketmq/admin/topic-lists.js';

describe('config/topics.json and config/groups.json', () => {
  const lists = readTopicLists();
  const collectors = lists.groups.filter(({ groupName }) => groupName.startsWith('seckill-dlq-collector'));

  it('contain no name twice and only names that RocketMQ accepts', () => {
    const names = [...lists.topics.map((t) => t.topicName), ...lists.groups.map((g) => g.groupName)];
    expect(new Set(names).size).to.equal(names.length);
    for (const { topicName } of lists.topics) expect(topicName).to.match(/^[%|a-zA-Z0-9_-]{1,127}$/);
    for (const { groupName } of lists.groups) expect(groupName).to.match(/^[%|a-zA-Z0-9_-]{1,120}$/);
  });

  it('accept the group of another program with its topics', () => {
    const own = withGroup(lists, 'shop-orders');
    expect(() => assertTopicLists(own)).to.not.throw();
    expect(own.topics.slice(lists.topics.length).map(({ topicName }) => topicName)).to.deep.equal([
      '%RETRY%shop-orders',
      '%DLQ%shop-orders',
    ]);
    expect(own.groups.at(-1)).to.deep.equal({ groupName: 'shop-orders', retryMaxTimes: 16 });
    expect(own.topics.slice(0, lists.topics.length)).to.deep.equal(lists.topics);
  });

  it('let no collector give up, because dead letters of dead letters would stay unread', () => {
    for (const { retryMaxTimes } of collectors) expect(retryMaxTimes).to.be.at.least(1_000);
  });
});

describe('read-back of topics', () => {
  const wanted: TopicLists = {
    topics: [
      { topicName: 't', readQueueNums: 4, writeQueueNums: 4, perm: 6, attributes: { '+message.type': 'DELAY' } },
    ],
    groups: [{ groupName: 'g', retryMaxTimes: 5 }],
  };
  const topic = {
    topicName: 't',
    readQueueNums: 4,
    writeQueueNums: 4,
    perm: 6,
    attributes: { 'message.type': 'DELAY' },
  };
  const stored = (change: object): StoredLists => ({
    topics: { t: { ...topic, ...change } },
    groups: { g: { groupName: 'g', retryMaxTimes: 5 } },
  });

  const namesIn = ({ topics, groups }: TopicLists): string[] => [
    ...topics.map(({ topicName }) => `topic ${topicName}`),
    ...groups.map(({ groupName }) => `group ${groupName}`),
  ];

  it('finds nothing missing if all topics exist, ignoring foreign topics', () => {
    const { topics, groups } = stored({});
    expect(namesIn(missingFrom({ topics: { ...topics, other: topic }, groups }, wanted))).to.deep.equal([]);
  });

  for (const change of [{ readQueueNums: 8 }, { writeQueueNums: 8 }, { perm: 4 }, { attributes: {} }]) {
    it(`notices a topic with ${JSON.stringify(change)}`, () => {
      expect(namesIn(missingFrom(stored(change), wanted))).to.deep.equal(['topic t']);
    });
  }

  it('names missing topics and groups, and a group with a different number of retries', () => {
    expect(namesIn(missingFrom({ topics: {}, groups: {} }, wanted))).to.deep.equal(['topic t', 'group g']);
    const groups = { g: { groupName: 'g', retryMaxTimes: 16 } };
    expect(namesIn(missingFrom({ ...stored({}), groups }, wanted))).to.deep.equal(['group g']);
  });
});

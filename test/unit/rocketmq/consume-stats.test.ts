import { expect } from 'chai';
import { parseConsumeStats } from '../../../src/rocketmq/admin/worker-progress.js';

describe('consume stats', () => {
  it('are read although their keys are objects', () => {
    const queue = (id: number): string => `{"brokerName":"broker-a","queueId":${id},"topic":"seckill-purchase"}`;
    const body = `{"consumeTps":0.0,"offsetTable":{${queue(0)}:{"brokerOffset":12,"consumerOffset":7,"lastTimestamp":0,"pullOffset":12},${queue(
      1,
    )}:{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0,"pullOffset":0}}}`;
    expect(parseConsumeStats(body)).to.deep.equal([
      { queue: '0', end: 12, received: 7 },
      { queue: '1', end: 0, received: 0 },
    ]);
    expect(parseConsumeStats('{"consumeTps":0.0,"offsetTable":{}}')).to.deep.equal([]);
  });
});

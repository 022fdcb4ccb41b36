import { expect } from 'chai';
import { readOffsetTable } from '../../../../src/rocketmq/admin/offset-tables.js';
import { RemotingError } from '../../../../src/rocketmq/admin/remoting.js';

const TOPIC = 'seckill-purchase';
const queue = (id: number): string => `{"brokerName":"broker-a","queueId":${id},"topic":"${TOPIC}"}`;

describe('offset tables', () => {
  it('are read although their keys are objects', () => {
    const body = `{"consumeTps":0.0,"offsetTable":{${queue(0)}:{"brokerOffset":12,"consumerOffset":7},${queue(
      1,
    )}:{"brokerOffset":0,"consumerOffset":0}}}`;
    expect(readOffsetTable(body, ['brokerOffset', 'consumerOffset'])).to.deep.equal([
      { topic: TOPIC, queueId: 0, figures: { brokerOffset: 12, consumerOffset: 7 } },
      { topic: TOPIC, queueId: 1, figures: { brokerOffset: 0, consumerOffset: 0 } },
    ]);
    expect(readOffsetTable('{"consumeTps":0.0,"offsetTable":{}}', ['brokerOffset'])).to.deep.equal([]);
  });

  it('throw if a required figure is missing', () => {
    const body = `{"offsetTable":{${queue(0)}:{"brokerOffset":12}}}`;
    expect(() => readOffsetTable(body, ['consumerOffset'])).to.throw(RemotingError, 'no consumerOffset');
  });
});

import { expect } from 'chai';
import { masterBrokers, parseAddress } from '../../../../src/rocketmq/admin/broker-state.js';
import { clockIn, readBrokerFacts, type BrokerSays } from '../../../../src/operate/doctor/read-broker-facts.js';
import { NO_PERMISSION, REQUEST } from '../../../../src/rocketmq/admin/remoting.js';
import { StandInCluster, type Broker, type Said } from '../../../helpers/stand-in-cluster.js';

const CONFIG = [
  'transactionCheckMax=15',
  'autoCreateTopicEnable=true',
  'initAuthenticationUser={"username":"seckill","password":"of-nobody"}',
  'haListenPort=10912',
  'haTransferBatchSize=-1',
  'storePathRootDir=/a=b',
].join('\n');

const ANSWERS: Readonly<Record<number, string>> = {
  [REQUEST.allTopicConfigs]: JSON.stringify({
    topicConfigTable: {
      t: { topicName: 't', readQueueNums: 4, writeQueueNums: 8, perm: 6, attributes: { 'message.type': 'DELAY' } },
      bare: { topicName: 'bare', readQueueNums: 1, writeQueueNums: 1, perm: 2 },
    },
  }),
  [REQUEST.allGroupConfigs]: JSON.stringify({
    subscriptionGroupTable: {
      g: { groupName: 'g', retryMaxTimes: 3 },
      off: { groupName: 'off', retryMaxTimes: 16, consumeEnable: false },
    },
  }),
  [REQUEST.brokerConfig]: CONFIG,
};

const topicOf = (topicName: string) =>
  ({ topicName, readQueueNums: 4, writeQueueNums: 4, perm: 6, attributes: { '+message.type': 'DELAY' } }) as const;
const WANTED = {
  topics: ['t', 'bare', 'none'].map(topicOf),
  groups: ['g', 'off', 'none'].map((groupName) => ({ groupName, retryMaxTimes: 3 })),
};

describe('facts of a broker', () => {
  const read = async (broker: Broker): Promise<BrokerSays> => {
    const cluster = await StandInCluster.start({ 'broker-a': broker });
    try {
      const [address] = await masterBrokers(parseAddress(cluster.namesrvAddr), null);
      if (address === undefined) throw new Error('there is no broker');
      return await readBrokerFacts(address, WANTED);
    } finally {
      cluster.close();
    }
  };
  const says = (code: number): Said => ({ code: 0, body: ANSWERS[code] ?? '{}' });

  it('include version, topics, groups and settings, with their expected values', async () => {
    const facts = await read(says);
    expect(facts).to.include({ server: 'broker-a', version: '5.4.0', strangers: 'served', skewMs: null });
    expect(facts).to.include({ replicaPort: 10_912, feedsReplicas: false });
    expect(facts.topics).to.deep.equal([
      { topic: 't', wantedType: 'DELAY', found: { type: 'DELAY', readQueues: 4, writeQueues: 8, perm: 6 } },
      { topic: 'bare', wantedType: 'DELAY', found: { type: '', readQueues: 1, writeQueues: 1, perm: 2 } },
      { topic: 'none', wantedType: 'DELAY', found: null },
    ]);
    expect(facts.groups).to.deep.equal([
      { group: 'g', wantedRetries: 3, found: { retries: 3, consumes: true } },
      { group: 'off', wantedRetries: 3, found: { retries: 16, consumes: false } },
      { group: 'none', wantedRetries: 3, found: null },
    ]);
    expect(facts.settings).to.include({
      transactionCheckMax: 15,
      autoCreateTopicEnable: true,
      transactionTimeOut: null,
      timerWheelEnable: null,
    });
    expect(JSON.stringify(facts), 'no secret of the broker').not.to.include('of-nobody');
  });

  it('leave out settings that the broker does not show, and include the rest', async () => {
    const facts = await read((code) => (code === REQUEST.brokerConfig ? { code: NO_PERMISSION } : says(code)));
    expect(facts).to.include({ settings: null, replicaPort: null, feedsReplicas: true, version: '5.4.0' });
  });

  it('are not read further if the broker refuses to list topics', async () => {
    const refused = read((code) => (code === REQUEST.allTopicConfigs ? { code: 1, remark: 'no' } : says(code)));
    expect(await refused.catch((error: Error) => error)).to.include({ name: 'RemotingError', message: 'no' });
  });

  it('include its clock, computed from its start and its uptime', () => {
    const bootTimestamp = String(Date.UTC(2026, 0, 1));
    const at = (runtime: string): number | null => clockIn({ bootTimestamp, runtime });
    expect(at('[ 0 days, 0 hours, 0 minutes, 7 seconds ]')).to.equal(Date.UTC(2026, 0, 1) + 7500);
    expect(at('[ 1,003 days, 2 hours, 3 minutes, 4 seconds ]')).to.equal(Date.UTC(2026, 0, 1 + 1003, 2, 3, 4) + 500);
    expect(at('')).to.equal(null);
    expect(clockIn({})).to.equal(null);
  });
});

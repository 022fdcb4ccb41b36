import { expect } from 'chai';
import { brokersKnownTo } from '../../../../src/rocketmq/admin/broker-state.js';
import { createWorkerProgress } from '../../../../src/rocketmq/admin/worker-progress.js';
import { RocketmqInspection } from '../../../../src/rocketmq/admin/inspection.js';
import { createTraceBroker } from '../../../../src/rocketmq/admin/trace-broker.js';
import { StandInCluster, type Broker } from '../../../helpers/stand-in-cluster.js';

/** Which brokers were asked. */
const asked = new Set<string>();
const broker =
  (name: string): Broker =>
  () => (asked.add(name), { code: 0, body: '{"connectionSet":[],"offsetTable":{}}' });
const BROKERS = { 'broker-a': broker('broker-a'), 'broker-b': broker('broker-b') };
const clusterOf = (name: string): string => (name === 'broker-a' ? 'production' : 'staging');

describe('the cluster of brokers, which may have any name', () => {
  let cluster: StandInCluster | null = null;
  beforeEach(() => asked.clear());
  afterEach(() => cluster?.close());

  it('the only one is ours, for the repair, the alerts and the trace alike', async () => {
    cluster = await StandInCluster.start(BROKERS);
    const { namesrvAddr } = cluster;
    await createWorkerProgress(namesrvAddr, null).ends();
    expect([...asked].sort()).to.deep.equal(['broker-a', 'broker-b']);
    asked.clear();
    await new RocketmqInspection(namesrvAddr, null).consumers('g');
    expect([...asked].sort()).to.deep.equal(['broker-a', 'broker-b']);
    asked.clear();
    await createTraceBroker(namesrvAddr, null).halvesOf('t');
    expect([...asked].sort()).to.deep.equal(['broker-a', 'broker-b']);
  });

  it('of several the one with our topics is ours', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf, withTopics: 'production' });
    const found = await brokersKnownTo(cluster.namesrvAddr, null, null);
    expect(found.map(({ name }) => name)).to.deep.equal(['broker-a']);
  });

  it('a name that a person gives counts, whatever has our topics', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf, withTopics: 'production' });
    const found = await brokersKnownTo(cluster.namesrvAddr, null, 'staging');
    expect(found.map(({ name }) => name)).to.deep.equal(['broker-b']);
  });

  it('several without our topics: a sentence that names them, and what to do', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf });
    const error = await brokersKnownTo(cluster.namesrvAddr, null, null).catch((cause: Error) => cause.message);
    expect(error).to.match(
      /knows the clusters production, staging, and none has the topic seckill-purchase: name one by --cluster$/,
    );
  });
});

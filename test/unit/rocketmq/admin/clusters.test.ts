import { expect } from 'chai';
import { brokersKnownTo } from '../../../../src/rocketmq/admin/broker-state.js';
import { createWorkerProgress } from '../../../../src/rocketmq/admin/worker-progress.js';
import { RocketmqInspection } from '../../../../src/operate/broker/rocketmq-inspection.js';
import { createTraceBroker } from '../../../../src/rocketmq/admin/trace-broker.js';
import { StandInCluster, type Broker } from '../../../helpers/stand-in-cluster.js';

/** Names of the brokers that received a request. */
const asked = new Set<string>();
const broker =
  (name: string): Broker =>
  () => (asked.add(name), { code: 0, body: '{"connectionSet":[],"offsetTable":{}}' });
const BROKERS = { 'broker-a': broker('broker-a'), 'broker-b': broker('broker-b') };
const clusterOf = (name: string): string => (name === 'broker-a' ? 'production' : 'staging');

describe('the cluster of brokers', () => {
  let cluster: StandInCluster | null = null;
  beforeEach(() => asked.clear());
  afterEach(() => cluster?.close());

  it('is the only cluster, for the repair, the alerts and the trace alike', async () => {
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

  it('is the cluster with our topics if there are several', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf, withTopics: 'production' });
    const found = await brokersKnownTo(cluster.namesrvAddr, null, null);
    expect(found.map(({ name }) => name)).to.deep.equal(['broker-a']);
  });

  it('is the configured cluster, whichever cluster has our topics', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf, withTopics: 'production' });
    const found = await brokersKnownTo(cluster.namesrvAddr, null, 'staging');
    expect(found.map(({ name }) => name)).to.deep.equal(['broker-b']);
  });

  it('throws an error with the names and the remedy if no cluster has our topics', async () => {
    cluster = await StandInCluster.start(BROKERS, { clusterOf });
    const error = await brokersKnownTo(cluster.namesrvAddr, null, null).catch((cause: Error) => cause.message);
    expect(error).to.match(
      /knows the clusters production, staging, but none has the topic seckill-purchase: choose a cluster with --cluster$/,
    );
  });
});

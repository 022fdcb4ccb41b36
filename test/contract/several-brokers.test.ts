import { expect } from 'chai';
import type { BrokerReport } from '../../src/core/ports/message-inspection.js';
import { RocketmqInspection } from '../../src/rocketmq/admin/inspection.js';
import { applyTopics } from '../../src/rocketmq/admin/apply-topics.js';
import { DEFAULT_CLUSTER } from '../../src/rocketmq/admin/broker-state.js';
import { readTopicLists } from '../../src/rocketmq/admin/topic-lists.js';
import { TOPICS } from '../../src/core/topics.js';
import { until } from '../chaos/harness/wait.js';
import { PrivateCluster } from '../helpers/private-cluster.js';

const BROKERS = ['broker-a', 'broker-b'];
/** A broker that does not answer costs 2 s, and a look asks each broker once before it does anything else. */
const SAID_WITHIN_MS = 8_000;

describe('inspection of several brokers', function () {
  this.timeout(240_000);
  let cluster: PrivateCluster;
  let inspection: RocketmqInspection;
  let heard: string[];
  before(async () => {
    cluster = await PrivateCluster.start(BROKERS);
    await applyTopics(
      { namesrvAddr: cluster.namesrvAddr, cluster: DEFAULT_CLUSTER, credentials: null },
      readTopicLists(),
    );
  });
  after(() => cluster?.close());
  beforeEach(() => {
    heard = [];
    inspection = inspect();
  });

  const inspect = (): RocketmqInspection =>
    new RocketmqInspection(cluster.namesrvAddr, null, { onDown: ({ name }) => heard.push(name) });
  const downOf = ({ name, down }: BrokerReport): string => `${name}: ${down ?? 'up'}`;
  /** A look, which must not wait for a broker that is away. */
  async function look(): Promise<{
    readonly brokers: string[];
    readonly queues: number | undefined;
    readonly tookMs: number;
  }> {
    const begunMs = performance.now();
    const { brokers } = await inspection.status([]);
    const queues = (await inspection.topics()).find(({ topic }) => topic === TOPICS.purchase)?.queues;
    return { brokers: brokers.map(downOf), queues, tookMs: performance.now() - begunMs };
  }

  it('shows both as one cluster', async () => {
    const { brokers, queues } = await look();
    expect(brokers).to.deep.equal(['broker-a: up', 'broker-b: up']);
    expect(queues, 'eight of each').to.equal(16);
    expect(heard).to.deep.equal([]);
  });

  it('names one that hangs, and shows what the other holds, in seconds', async () => {
    await cluster.signal('broker-b', 'SIGSTOP');
    try {
      const { brokers, queues, tookMs } = await look();
      expect(brokers[0]).to.equal('broker-a: up');
      expect(brokers[1]).to.match(/^broker-b: 127\.0\.0\.1:\d+ does not answer$/);
      expect(queues).to.equal(8);
      expect(tookMs).to.be.below(SAID_WITHIN_MS);
      expect(heard).to.include('broker-b').and.not.include('broker-a');
    } finally {
      await cluster.signal('broker-b', 'SIGCONT');
    }
    await until('it answers again', async () => (await look()).brokers.every((line) => line.endsWith(': up')), 30_000);
  });

  it('goes on without one that dies while it is asked, and names it though the name server has forgotten it', async () => {
    expect((await look()).queues).to.equal(16);
    const looking = Promise.all(Array.from({ length: 8 }, () => inspection.topics()));
    await cluster.signal('broker-b', 'SIGKILL');
    for (const topics of await looking) {
      expect(topics.find(({ topic }) => topic === TOPICS.purchase)?.queues).to.be.oneOf([8, 16]);
    }
    const isForgotten = async (): Promise<boolean> => (await inspect().status([])).brokers.length === 1;
    await until('the name server has forgotten it', isForgotten, 180_000, 500);
    heard = [];
    const { brokers, queues } = await look();
    expect(brokers).to.deep.equal(['broker-a: up', 'broker-b: no name server knows it any more']);
    expect(queues).to.equal(8);
    expect(heard).to.deep.equal(['broker-b', 'broker-b']);
  });
});

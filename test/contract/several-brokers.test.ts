import { expect } from 'chai';
import type { Broker } from '../../src/contract/broker.js';
import { newBatchId } from '../../src/core/batch.js';
import { loadConfig } from '../../src/core/config/load.js';
import { openBroker } from '../../src/operate/broker/services.js';
import { RocketmqInspection } from '../../src/operate/broker/rocketmq-inspection.js';
import { applyTopics } from '../../src/rocketmq/admin/apply-topics.js';
import { readTopicLists } from '../../src/rocketmq/admin/topic-lists.js';
import { TOPICS } from '../../src/core/topics.js';
import { found, until } from '../chaos/harness/wait.js';
import { PrivateCluster } from '../helpers/private-cluster.js';

const BROKERS = ['broker-a', 'broker-b'];
/** A silent broker costs a view 2 s, because the view first contacts each broker once. */
const SAID_WITHIN_MS = 20_000;
/** Each view asks for every topic, and more concurrent views would overload a small machine. */
const LOOKS_AT_A_KILL = 3;

describe('inspection of several brokers', () => {
  let cluster: PrivateCluster;
  let inspection: RocketmqInspection;
  let heard: string[];
  before(async () => {
    cluster = await PrivateCluster.start(BROKERS);
    await applyTopics(
      // The first name server does not answer.
      { namesrvAddr: `127.0.0.1:1;${cluster.namesrvAddr}`, cluster: null, credentials: null },
      readTopicLists(),
    );
    heard = [];
    inspection = inspect();
    await until('both answer in time, which the first questions take long for', answersWhole);
  });
  after(() => cluster?.close());
  beforeEach(() => {
    heard = [];
    inspection = inspect();
  });

  const inspect = (): RocketmqInspection =>
    new RocketmqInspection(cluster.namesrvAddr, null, { onDown: ({ name }) => heard.push(name) });
  const downOf = ({ name, down }: Broker): string => `${name}: ${down ?? 'up'}`;
  /** Requests a view, which must not wait for an unreachable broker. */
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

  /** Returns the first view in which these brokers answer, because a busy broker may be late. */
  const lookUntilUp = (prefix: string) =>
    found(`${prefix} answers`, async () => {
      heard = [];
      const looked = await look();
      return looked.brokers.every((line) => line.endsWith(': up') || !line.startsWith(prefix)) ? looked : null;
    });
  const answersWhole = async (): Promise<boolean> => (await look()).brokers.every((line) => line.endsWith(': up'));

  it('shows both brokers as one cluster', async () => {
    const { brokers, queues } = await lookUntilUp('broker-');
    expect(brokers).to.deep.equal(['broker-a: up', 'broker-b: up']);
    expect(queues, 'eight of each').to.equal(16);
    expect(heard).to.deep.equal([]);
  });

  it('names a broker that hangs, and shows the data of the other broker within seconds', async () => {
    await cluster.signal('broker-b', 'SIGSTOP');
    try {
      const { brokers, queues, tookMs } = await lookUntilUp('broker-a');
      expect(brokers[1]).to.match(/^broker-b: 127\.0\.0\.1:\d+ does not answer$/);
      expect(queues).to.equal(8);
      expect(tookMs).to.be.below(SAID_WITHIN_MS);
      expect(heard).to.include('broker-b').and.not.include('broker-a');
    } finally {
      await cluster.signal('broker-b', 'SIGCONT');
    }
    await until('it answers again', answersWhole);
  });

  it('continues without a broker that dies during a request, and names that broker', async () => {
    expect((await lookUntilUp('broker-')).queues).to.equal(16);
    const ofApi = openBroker(loadConfig(['repair', 'brokerAccess'], { NAMESRV_ADDR: cluster.namesrvAddr }));
    expect((await ofApi.brokerViews?.topics())?.down).to.deep.equal([]);
    const looking = Promise.all(Array.from({ length: LOOKS_AT_A_KILL }, () => inspection.topics()));
    await cluster.signal('broker-b', 'SIGKILL');
    for (const topics of await looking) {
      expect(topics.find(({ topic }) => topic === TOPICS.purchase)?.queues).to.be.oneOf([8, 16]);
    }
    const isForgotten = async (): Promise<boolean> => (await inspect().status([])).brokers.length === 1;
    await until('the name server has forgotten it', isForgotten, { everyMs: 500, grantedMs: 180_000 });
    const { brokers, queues } = await lookUntilUp('broker-a');
    expect(brokers).to.deep.equal(['broker-a: up', 'broker-b: no name server knows this broker any more']);
    expect(queues).to.equal(8);
    expect(heard).to.deep.equal(['broker-b', 'broker-b']);
    const said = 'no name server knows this broker any more';
    const { down = [] } = (await ofApi.brokerViews?.producers()) ?? {};
    expect(down.map(({ name, down: why }) => [name, why])).to.deep.equal([['broker-b', said]]);
    const ofBatch = await ofApi.traceBroker?.messagesOf(newBatchId());
    expect(ofBatch).to.deep.equal({ found: [], silent: [{ name: 'broker-b', why: said }] });
  });
});

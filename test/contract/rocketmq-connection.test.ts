import { Registry } from 'prom-client';
import { expect } from 'chai';
import { OperationalError } from '../../src/core/errors.js';
import { GROUPS, TOPICS } from '../../src/core/topics.js';
import { createChannelMetrics } from '../../src/rocketmq/metrics.js';
import { brokerOf, credentialsIn } from '../helpers/broker.js';
import { silentLog } from '../helpers/silent-log.js';
import { createDeliverySource } from '../../src/rocketmq/delivery-source.js';
import { probeBroker } from '../../src/rocketmq/probe.js';
import { createPurchaseChannel } from '../../src/rocketmq/purchase-channel.js';
import { signaturesOf } from '../helpers/signatures.js';
import { stackEnv } from '../helpers/stack-env.js';
import { TcpProxy } from '../chaos/harness/tcp-proxy.js';
import { freshBatch } from './broker-worlds.js';
import { pause, until } from '../chaos/harness/wait.js';

const log = silentLog;
const metrics = createChannelMetrics(new Registry());
const NOWHERE = '127.0.0.1:1';
/** A keepalive every 20 s, 5 s for its response, and a margin. */
const HALF_OPEN_HEALED_MS = 35_000;

const openChannel = (endpoint: string) =>
  createPurchaseChannel({
    endpoint,
    credentials: credentialsIn(stackEnv()),
    pinEndpoint: true, // The broker returns its own address, which would bypass a TcpProxy.
    checkBack: async () => 'no_answer', // The broker may ask about half messages of another suite.
    checksInParallel: 4,
    requestTimeoutMs: 1_000,
    signatures: signaturesOf(stackEnv()),
    log,
    metrics,
    start: { attempts: 1 },
  });

async function failureOf(work: Promise<unknown>): Promise<OperationalError> {
  const [outcome] = await Promise.allSettled([work]);
  expect(outcome.status).to.equal('rejected');
  const { reason } = outcome as PromiseRejectedResult;
  expect(reason).to.be.instanceOf(OperationalError);
  return reason as OperationalError;
}

describe('rocketmq connection', () => {
  let broker: ReturnType<typeof brokerOf>;
  before(() => {
    broker = brokerOf(stackEnv());
  });

  it('does not start without a proxy, and names the address and reason [M4]', async () => {
    const error = await failureOf(openChannel(NOWHERE));
    expect(error.message).to.include(NOWHERE).and.include('ECONNREFUSED').and.include(TOPICS.purchase);
  });

  it('names a missing group in the error', async () => {
    const group = 'seckill-no-such-group';
    const source = await createDeliverySource({ ...broker, topic: TOPICS.redrive, group, invisibleMs: 10_000, log });
    try {
      // later, because the broker checks the group at the start
      const error = await failureOf(source.receive(1));
      expect(error.message).to.include(group).and.include('does not exist').and.include('`seckill topics`');
    } finally {
      await source.close();
    }
  });

  it('names a missing topic in the error', async () => {
    const topic = 'seckill-no-such-topic';
    const start = { attempts: 1 };
    const group = GROUPS.writer;
    const opening = createDeliverySource({ ...broker, topic, group, invisibleMs: 10_000, log, start });
    expect((await failureOf(opening)).message)
      .to.include(topic)
      .and.include('`seckill topics`');
  });

  it('returns unknown once after a connection reset, and then recovers [M1]', async () => {
    const proxy = await TcpProxy.open(broker.endpoint);
    const channel = await openChannel(proxy.address);
    try {
      expect(await channel.sendHalf(freshBatch())).to.be.an('object');
      expect(proxy.bytes, 'the route leads through the proxy').to.be.greaterThan(1_000);
      proxy.freeze();
      const cut = channel.sendHalf(freshBatch());
      setTimeout(() => proxy.reset(), 100);
      expect(await cut).to.equal('outcome_unknown');
      let again: unknown = 'unavailable';
      for (let n = 0; n < 50 && typeof again === 'string'; n++) {
        await pause(200);
        again = await channel.sendHalf(freshBatch());
      }
      expect(again).to.be.an('object');
    } finally {
      await channel.close();
      await proxy.close();
    }
  });

  it('closes a silent connection by keepalive, and returns unknown for every send until then', async () => {
    const proxy = await TcpProxy.open(broker.endpoint);
    const channel = await openChannel(proxy.address);
    try {
      expect(await channel.sendHalf(freshBatch())).to.be.an('object');
      const before = proxy.connections;
      proxy.freeze();
      const frozenAtMs = Date.now();
      expect(await channel.sendHalf(freshBatch())).to.equal('outcome_unknown');
      expect(await probeBroker(proxy.address, channel.health)).to.have.property('state', 'failing');

      let healed = false;
      while (!healed && Date.now() - frozenAtMs < HALF_OPEN_HEALED_MS) {
        healed = typeof (await channel.sendHalf(freshBatch())) === 'object';
      }
      expect(healed, 'sends again').to.equal(true);
      expect(proxy.connections, 'over a new connection').to.be.greaterThan(before);
      expect(await probeBroker(proxy.address, channel.health)).to.deep.equal({ state: 'reachable' });
    } finally {
      await channel.close();
      await proxy.close();
    }
  });

  it('starts at a live proxy of a list, and uses the next proxy when its own dies [M4]', async () => {
    const proxies = await Promise.all([TcpProxy.open(broker.endpoint), TcpProxy.open(broker.endpoint)]);
    const list = [NOWHERE, ...proxies.map(({ address }) => address)].join();
    let channel: Awaited<ReturnType<typeof openChannel>> | undefined;
    try {
      const opened = (channel = await openChannel(list));
      expect(await opened.sendHalf(freshBatch())).to.be.an('object');
      const [used, spare] = proxies[0].connections > 0 ? proxies : proxies.toReversed();
      expect(spare?.connections, 'it uses one proxy').to.equal(0);
      await used?.close();
      await until('it sends again', async () => typeof (await opened.sendHalf(freshBatch())) === 'object');
      expect(spare?.connections, 'through the other proxy').to.be.greaterThan(0);
      expect(await probeBroker(list)).to.deep.equal({ state: 'reachable' });
    } finally {
      await channel?.close();
      await Promise.all(proxies.map((proxy) => proxy.close()));
    }
  });

  it('reports a server that accepts connections but never answers as unreachable', async () => {
    const proxy = await TcpProxy.open(broker.endpoint);
    try {
      proxy.stall();
      expect(await probeBroker(proxy.address)).to.deep.equal({
        state: 'unreachable',
        detail: `${proxy.address}: no answer within 700 ms`,
      });
      proxy.resume();
      expect(await probeBroker(proxy.address)).to.deep.equal({ state: 'reachable' });
    } finally {
      await proxy.close();
    }
  });

  it('reports a closed port and a malformed endpoint as unreachable', async () => {
    expect(await probeBroker(broker.endpoint)).to.deep.equal({ state: 'reachable' });
    const closed = await probeBroker(NOWHERE);
    expect(closed.state).to.equal('unreachable');
    expect(closed).to.have.property('detail').that.includes('ECONNREFUSED');
    expect(await probeBroker('nonsense')).to.have.property('state', 'unreachable');
  });
});

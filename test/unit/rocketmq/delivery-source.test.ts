import { expect } from 'chai';
import type { MessageView } from 'rocketmq-client-nodejs';
import sinon from 'sinon';
import { OperationalError } from '../../../src/core/errors.js';
import { createDeliverySource, type DeliverySourceOptions } from '../../../src/rocketmq/delivery-source.js';
import { PatchedConsumer } from '../../../src/rocketmq/clients-with-workarounds.js';
import { recordingLog } from './recording-log.js';
import { grantedMsOf } from '../../chaos/harness/wait.js';

const DEAF_AFTER_MS = 60_000;

function view(parts: Partial<MessageView> = {}): MessageView {
  const properties = new Map([['batchId', 'b1']]);
  return { messageId: 'm1', body: Buffer.from('{"ü":1}'), deliveryAttempt: 2, properties, ...parts } as MessageView;
}

/** Opens a source whose client receives nothing. The stubs act as the network. */
async function openSource(options: Partial<DeliverySourceOptions> = {}) {
  const client = {
    startup: sinon.stub(PatchedConsumer.prototype, 'startup').resolves(),
    shutdown: sinon.stub(PatchedConsumer.prototype, 'shutdown').resolves(),
    receive: sinon.stub(PatchedConsumer.prototype, 'receive').resolves([]),
    ack: sinon.stub(PatchedConsumer.prototype, 'ackOne').resolves(),
    hide: sinon.stub(PatchedConsumer.prototype, 'hideFor').resolves(),
  };
  const { log, lines } = recordingLog();
  const broker = { endpoint: 'proxy:1', credentials: null };
  const base = { ...broker, topic: 'seckill-purchase', group: 'seckill-order-writer', invisibleMs: 10_000 };
  const source = await createDeliverySource({ ...base, log, ...options });
  const failure = async (): Promise<OperationalError> => {
    const [outcome] = await Promise.allSettled([source.receive(32)]);
    expect(outcome.status).to.equal('rejected');
    return (outcome as PromiseRejectedResult).reason as OperationalError;
  };
  return { source, client, lines, failure };
}

describe('delivery-source', () => {
  it('hands out a message with its attempt, its properties and whether it was checked back', async () => {
    const { source, client } = await openSource();
    const checked = new Map([['TRANSACTION_CHECK_TIMES', '1']]);
    client.receive.resolves([view(), view({ messageId: 'm2', properties: checked })]);
    const [first, second] = await source.receive(32);
    expect(first).to.include({ messageId: 'm1', body: '{"ü":1}', attempt: 2, checkedBack: false });
    expect(first?.properties.get('batchId')).to.equal('b1');
    expect(second?.checkedBack).to.equal(true);
    expect(client.receive.firstCall.args).to.deep.equal([32, 10_000]);
  });

  it('sends an ack or a retry once, and again only if the first was refused', async () => {
    const { source, client } = await openSource();
    client.receive.resolves([view()]);
    const [delivery] = await source.receive(1);
    client.ack.onFirstCall().rejects(new Error('40013 receipt expired'));
    expect(await delivery?.ack()).to.equal(false);
    expect(await delivery?.ack()).to.equal(true);
    await delivery?.retryAfter(1_000);
    expect(await delivery?.ack()).to.equal(false);
    expect(client.ack.callCount).to.equal(2);
    expect(client.hide.callCount).to.equal(0);
  });

  it('hands out no damaged body', async () => {
    const { source, client, lines } = await openSource();
    client.receive.resolves([view({ corrupted: true }), view({ messageId: 'm2' })]);
    expect((await source.receive(32)).map(({ messageId }) => messageId)).to.deep.equal(['m2']);
    expect(lines.map(({ level }) => level)).to.deep.equal(['error']);
  });

  it('throws a retryable OperationalError if a receive fails', async () => {
    const { client, failure, source } = await openSource();
    client.receive.rejects(new Error('14 UNAVAILABLE'));
    const error = await failure();
    expect(error).to.be.instanceOf(OperationalError);
    expect(error).to.include({ dependency: 'rocketmq', retryable: true });
    expect(source.health.isFailing()).to.equal(true);
  });

  it('refuses a message count that the broker would refuse', async () => {
    const { source } = await openSource();
    const outcomes = await Promise.allSettled([source.receive(0), source.receive(33)]);
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
  });
});

describe('delivery-source: client whose receives fail', () => {
  let clock: sinon.SinonFakeTimers;
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['Date', 'performance'] });
  });

  it('is replaced if no receive has returned for a minute', async () => {
    const { source, client, failure } = await openSource();
    client.receive.rejects(new Error('no answer'));
    await failure();
    clock.tick(DEAF_AFTER_MS - 1);
    await failure();
    expect(client.startup.callCount, 'not yet').to.equal(1);

    clock.tick(1);
    client.receive.resolves([]);
    expect(await source.receive(1)).to.deep.equal([]);
    expect(client.startup.callCount).to.equal(2);
    expect(client.shutdown.callCount, 'the old client').to.equal(1);
    expect(client.shutdown.firstCall.thisValue).to.equal(client.startup.firstCall.thisValue);
    expect(client.receive.lastCall.thisValue).to.equal(client.startup.secondCall.thisValue);
  });

  it('stays open if it receives nothing for a minute or its receives are empty', async () => {
    const { source, client } = await openSource();
    await source.receive(1);
    clock.tick(10 * DEAF_AFTER_MS);
    await source.receive(1);
    await source.receive(1);
    expect(client.startup.callCount).to.equal(1);
  });

  it('gets another minute after one successful receive', async () => {
    const { source, client, failure } = await openSource();
    client.receive.onFirstCall().rejects(new Error('a hiccup'));
    client.receive.onThirdCall().rejects(new Error('another'));
    await failure();
    await source.receive(1);
    clock.tick(DEAF_AFTER_MS);
    await failure();
    await source.receive(1);
    expect(client.startup.callCount).to.equal(1);
  });

  it('is replaced once if several loops notice at the same time', async () => {
    const { source, client, failure } = await openSource();
    client.receive.onFirstCall().rejects(new Error('no answer'));
    await failure();
    clock.tick(DEAF_AFTER_MS);
    await Promise.all([source.receive(1), source.receive(1), source.receive(1)]);
    expect(client.startup.callCount).to.equal(2);
  });

  it('stays for another minute if no new client starts', async () => {
    const { source, client, failure } = await openSource();
    client.receive.rejects(new Error('no answer'));
    await failure();
    clock.tick(DEAF_AFTER_MS);
    client.startup.rejects(new Error('no proxy'));
    expect((await failure()).message).to.include('cannot start a RocketMQ client');
    client.receive.resolves([]);
    await source.receive(1);
    expect(client.startup.callCount).to.equal(2);
    expect(client.receive.lastCall.thisValue).to.equal(client.startup.firstCall.thisValue);
  });

  it('logs one line at the start and one line at the end of an outage', async () => {
    const { source, client, lines, failure } = await openSource({ start: { attempts: 1 } });
    client.receive.rejects(new Error('no answer'));
    client.startup.rejects(new Error('no proxy'));
    await failure();
    for (let minute = 0; minute < 5; minute++) {
      clock.tick(DEAF_AFTER_MS);
      await failure();
    }
    expect(lines.map(({ message }) => message)).to.deep.equal([
      'no call of receive has returned for too long; starting a new consumer each minute',
    ]);
    client.receive.resolves([]);
    await source.receive(1);
    expect(lines.slice(1).map(({ message, fields }) => [message, fields.failures])).to.deep.equal([
      ['a new consumer receives messages', 5],
    ]);
  });
});

describe('delivery-source: close', () => {
  it('waits for the open receive and its messages, then ends the client', async () => {
    const { source, client } = await openSource();
    let bring: (views: MessageView[]) => void = () => undefined;
    client.receive.returns(new Promise((resolve) => (bring = resolve)));
    const receiving = source.receive(1);
    let closed = false;
    const closing = source.close().then(() => (closed = true));
    expect(await source.receive(1), 'no new receive').to.deep.equal([]);

    bring([view()]);
    const [delivery] = await receiving;
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(closed, 'one delivery is still being worked on').to.equal(false);
    expect(client.shutdown.callCount).to.equal(0);
    const tookMs = await grantedMsOf(async () => {
      expect(await delivery?.ack()).to.equal(true);
      await closing;
    });
    expect(tookMs, 'not the full drain time').to.be.lessThan(1_000);
    expect(client.shutdown.callCount).to.equal(1);
    expect(client.receive.callCount).to.equal(1);
  });

  it('does not wait for ever for a receive that never returns', async () => {
    const { source, client } = await openSource({ awaitMs: 10, requestTimeoutMs: 20 });
    client.receive.returns(new Promise(() => undefined));
    void source.receive(1);
    await source.close();
    expect(client.shutdown.callCount).to.equal(1);
  });
});

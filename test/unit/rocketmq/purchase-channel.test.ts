import { expect } from 'chai';
import { InternalErrorException, type MessageOptions, type SendReceipt } from 'rocketmq-client-nodejs';
import sinon from 'sinon';
import { sealBatch } from '../../../src/core/batch.js';
import type { HalfMessage } from '../../../src/core/ports/channels.js';
import { PatchedProducer } from '../../../src/rocketmq/clients-with-workarounds.js';
import { createPurchaseChannel } from '../../../src/rocketmq/purchase-channel.js';
import { TEST_SIGNATURES } from '../../helpers/signatures.js';
import { recordingLog } from './recording-log.js';

const COMMIT = 1;
const ROLLBACK = 2;
const receipt = { messageId: 'm1', transactionId: 't1', endpoints: { facade: 'x' } } as unknown as SendReceipt;
const batch = sealBatch({
  batchId: 'batch-1',
  saleId: '7',
  bucket: 0,
  epoch: 3,
  createdAtMs: 1,
  traceparent: '',
  purchases: [{ userId: 'u1', requestId: 'r1', quantity: 2 }],
});

/** Opens a channel whose client sends nothing. The stubs act as the network. */
async function openChannel() {
  const client = {
    startup: sinon.stub(PatchedProducer.prototype, 'startup').resolves(),
    shutdown: sinon.stub(PatchedProducer.prototype, 'shutdown').resolves(),
    begin: sinon
      .stub(PatchedProducer.prototype, 'beginTransaction')
      .returns({} as ReturnType<PatchedProducer['beginTransaction']>),
    send: sinon.stub(PatchedProducer.prototype, 'send').resolves(receipt),
    end: sinon.stub(PatchedProducer.prototype, 'endTransaction').resolves(),
  };
  const metrics = { halfSent: sinon.spy(), checkedBack: sinon.spy(), endFailed: sinon.spy() };
  const { log, lines } = recordingLog();
  const checkBack = async (): Promise<'no_answer'> => 'no_answer';
  const channel = await createPurchaseChannel({
    endpoint: 'proxy:1',
    credentials: null,
    signatures: TEST_SIGNATURES,
    checkBack,
    checksInParallel: 1,
    log,
    metrics,
  });
  const sendHalf = async (): Promise<HalfMessage> => {
    const half = await channel.sendHalf(batch);
    if (typeof half === 'string') throw new Error(half);
    return half;
  };
  return { channel, client, metrics, lines, sendHalf };
}

describe('purchase-channel', () => {
  it('sends the body with its key and the properties that a dead letter needs', async () => {
    const { client, sendHalf, metrics, channel } = await openChannel();
    await sendHalf();
    const message = client.send.firstCall.args[0] as MessageOptions;
    expect(message.topic).to.equal('seckill-purchase');
    expect(message.keys).to.deep.equal(['batch-1']);
    expect(message.body.toString('utf8')).to.equal(batch.body);
    expect(Object.fromEntries(message.properties ?? [])).to.deep.equal({
      topic: 'seckill-purchase',
      saleId: '7',
      batchId: 'batch-1',
      epoch: '3',
      signature: TEST_SIGNATURES.sign('seckill-purchase', batch.body),
    });
    expect(metrics.halfSent.firstCall.args[0]).to.equal('stored');
    expect(channel.health.isFailing()).to.equal(false);
  });

  it('returns unavailable only if the broker certainly did not get the message', async () => {
    const { channel, client, metrics } = await openChannel();
    client.send.rejects(new TypeError('too large'));
    expect(await channel.sendHalf(batch)).to.equal('unavailable');
    client.send.rejects(new Error('4 DEADLINE_EXCEEDED'));
    expect(await channel.sendHalf(batch)).to.equal('outcome_unknown');
    client.begin.throws(new Error('Producer is not running now'));
    expect(await channel.sendHalf(batch)).to.equal('unavailable');
    const outcomes = metrics.halfSent.args.map(([outcome]) => outcome as string);
    expect(outcomes).to.deep.equal(['unavailable', 'outcome_unknown', 'unavailable']);
  });

  const DEAD_BROKER = new InternalErrorException(50_001, 'RemotingConnectException: connect to 10.0.0.3:10911 failed');
  const withBrokers = (count: number) => sinon.stub(PatchedProducer.prototype, 'brokers').get(() => count);

  it('sends an unstored message again while another broker may accept it', async () => {
    withBrokers(2);
    const { client, sendHalf } = await openChannel();
    for (const nth of [0, 1]) client.send.onCall(nth).rejects(DEAD_BROKER);
    await sendHalf();
    expect(client.send.callCount).to.equal(3);
    expect(client.begin.callCount, 'each send has its own transaction').to.equal(3);
  });

  it('never resends a message that may be stored', async () => {
    withBrokers(2);
    const { client, channel } = await openChannel();
    client.send.onFirstCall().rejects(DEAD_BROKER);
    client.send.onSecondCall().rejects(new Error('4 DEADLINE_EXCEEDED'));
    expect(await channel.sendHalf(batch)).to.equal('outcome_unknown');
    expect(client.send.callCount).to.equal(2);
  });

  it('returns unavailable if no broker can be reached', async () => {
    for (const [brokers, sends] of [
      [2, 9],
      [1, 1],
    ] as const) {
      withBrokers(brokers);
      const { client, channel } = await openChannel();
      client.send.rejects(DEAD_BROKER);
      expect(await channel.sendHalf(batch)).to.equal('unavailable');
      expect(client.send.callCount).to.equal(sends);
      sinon.restore();
    }
  });

  it('sends once if the brokers share a proxy that cannot be reached', async () => {
    withBrokers(2);
    const refused = Object.assign(new Error('14 UNAVAILABLE: connect ECONNREFUSED'), { code: 14 });
    for (const [addresses, sends] of [
      [1, 1],
      [2, 9],
    ] as const) {
      const count = sinon.stub(PatchedProducer.prototype, 'addresses').get(() => addresses);
      const { client, channel } = await openChannel();
      client.send.rejects(refused);
      expect(await channel.sendHalf(batch)).to.equal('unavailable');
      expect(client.send.callCount).to.equal(sends);
      count.restore();
      for (const stub of Object.values(client)) stub.restore();
    }
  });

  it('returns outcome_unknown for an answer without a receipt', async () => {
    const { channel, client } = await openChannel();
    client.send.resolves(undefined);
    expect(await channel.sendHalf(batch)).to.equal('outcome_unknown');
  });

  it('commits and rolls back the message that the receipt names', async () => {
    const { client, sendHalf } = await openChannel();
    const half = await sendHalf();
    await half.commit();
    expect(await half.rollback()).to.equal(true);
    const calls = client.end.args.map(([endpoints, { topic }, messageId, transactionId, resolution]) => ({
      endpoints: endpoints.facade,
      topic,
      messageId,
      transactionId,
      resolution,
    }));
    const same = { endpoints: 'x', topic: 'seckill-purchase', messageId: 'm1', transactionId: 't1' };
    expect(calls).to.deep.equal([
      { ...same, resolution: COMMIT },
      { ...same, resolution: ROLLBACK },
    ]);
  });

  it('does not reject if a commit fails, and confirms no failed rollback [T4, T5]', async () => {
    const { client, sendHalf, metrics, lines } = await openChannel();
    const half = await sendHalf();
    client.end.rejects(new InternalErrorException(50_001, 'cannot found transaction data'));
    await half.commit();
    client.end.rejects(new Error('4 DEADLINE_EXCEEDED'));
    expect(await half.rollback()).to.equal(false);
    expect(metrics.endFailed.args).to.deep.equal([['commit'], ['rollback']]);
    expect(lines.map(({ level }) => level)).to.deep.equal(['debug', 'warn']); // a failed commit is normal operation
  });

  it('warns when trouble begins, not for every message', async () => {
    const { channel, client, lines } = await openChannel();
    client.send.rejects(new Error('4 DEADLINE_EXCEEDED'));
    for (let n = 0; n < 3; n++) await channel.sendHalf(batch);
    expect(lines.map(({ level }) => level)).to.deep.equal(['warn', 'debug', 'debug']);
    expect(channel.health.isFailing()).to.equal(true);
  });

  it('closes even if the shutdown of the client fails', async () => {
    const { channel, client } = await openChannel();
    client.shutdown.rejects(new Error('the proxy is gone'));
    await channel.close();
    expect(client.shutdown.calledOnce).to.equal(true);
  });
});

import { expect } from 'chai';
import { readKeyring } from '../../../../src/core/hmac.js';
import { MessageSignatures } from '../../../../src/core/message-signatures.js';
import { encodeOrderEvents, type OrderEventType } from '../../../../src/core/order-event.js';
import { composeOrderId } from '../../../../src/core/order-id.js';
import { TOPICS } from '../../../../src/core/topics.js';
import type { LostOrder } from '../../../../src/operate/reconcile/resolve-lost.js';
import { createBrokerSearch, type BrokerSearch } from '../../../../src/operate/reconcile/search-broker.js';
import { REQUEST } from '../../../../src/rocketmq/admin/remoting.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { TEST_SIGNATURES } from '../../../helpers/signatures.js';
import { StandInCluster, type Broker } from '../../../helpers/stand-in-cluster.js';
import { storedMessage } from '../../../helpers/stored-message.js';

const MINTED_MS = Date.UTC(2030, 0, 1);
const MINUTE_MS = 60_000;
const ORDER_ID = composeOrderId(MINTED_MS, 1, 'ann', 1);
const LOST: LostOrder = {
  userId: 'ann',
  requestId: 'k1',
  quantity: 1,
  orderId: ORDER_ID,
  batchId: null,
  holdsUnits: true,
};
const BATCH = batchOf({ saleId: '7' }, purchasesOf('ann', 'bob'));
const event = (type: OrderEventType, saleId = '7'): string =>
  encodeOrderEvents([{ eventId: 'e1', type, saleId, orders: [ORDER_ID], atMs: 1 }]);

interface Message {
  readonly topic: string;
  readonly body: string;
  readonly signature?: string;
  readonly storedAtMs?: number;
}

describe('search for lost orders at the broker', () => {
  let cluster: StandInCluster | null = null;
  afterEach(() => {
    cluster?.close();
    cluster = null;
  });

  /** A broker with one queue per topic. */
  const brokerWith =
    (messages: readonly Message[]): Broker =>
    (code, { topic, queueOffset, timestamp }) => {
      const queue = messages.filter((one) => one.topic === topic);
      const at = ({ storedAtMs = MINTED_MS }: Message): number => storedAtMs;
      if (code === REQUEST.topicStats) {
        const place = `{"brokerName":"b","queueId":0,"topic":"${topic}"}`;
        const ends = `{"lastUpdateTimestamp":1,"maxOffset":${queue.length},"minOffset":0}`;
        return { code: 0, body: `{"offsetTable":{${place}:${ends}}}` };
      }
      if (code === REQUEST.searchOffset) {
        const offset = queue.filter((one) => at(one) < Number(timestamp)).length;
        return { code: 0, extFields: { offset: String(offset) } };
      }
      const stored = queue.slice(Number(queueOffset)).map((one, index) =>
        storedMessage({
          topic: one.topic,
          offset: Number(queueOffset) + index,
          storedAtMs: at(one),
          body: Buffer.from(one.body),
          properties: `signature\u0001${one.signature ?? TEST_SIGNATURES.sign(one.topic, one.body)}\u0002`,
        }),
      );
      return { code: 0, body: Buffer.concat(stored) };
    };
  const search = async (brokers: Readonly<Record<string, Broker>>): Promise<BrokerSearch> => {
    cluster?.close();
    cluster = await StandInCluster.start(brokers);
    return createBrokerSearch(cluster.namesrvAddr, null, TEST_SIGNATURES)('7', [LOST]);
  };
  const evidenceOf = ({ found }: BrokerSearch): unknown[] => {
    const { batch, events = new Set() } = found.get('ann/k1') ?? {};
    return [batch?.batchId, ...events];
  };

  it('finds the message and the events of an order on every topic', async () => {
    const purchase = { topic: TOPICS.purchase, body: BATCH.body };
    const paid = { topic: TOPICS.orderEvent, body: event('order.paid'), storedAtMs: MINTED_MS + 600 * MINUTE_MS };
    const found = await search({
      'broker-a': brokerWith([purchase]),
      'broker-b': brokerWith([paid, { topic: TOPICS.orderEvent, body: event('order.created', '8') }]),
    });
    expect(evidenceOf(found)).to.deep.equal([BATCH.batchId, 'order.paid']);
    expect([...found.found.keys()], 'nothing about other buyers').to.deep.equal(['ann/k1']);
    expect(found.silent).to.equal(null);
    const again = await search({ 'broker-a': brokerWith([{ ...purchase, topic: TOPICS.redrive }]) });
    expect(evidenceOf(again)).to.deep.equal([BATCH.batchId]);
  });

  it('reads only the time in which the message may have been sent', async () => {
    const at = (minutes: number): Message => ({
      topic: TOPICS.purchase,
      body: BATCH.body,
      storedAtMs: MINTED_MS + minutes * MINUTE_MS,
    });
    expect(evidenceOf(await search({ 'broker-a': brokerWith([at(-61)]) }))).to.deep.equal([undefined]);
    expect(evidenceOf(await search({ 'broker-a': brokerWith([at(2)]) }))).to.deep.equal([undefined]);
    expect(evidenceOf(await search({ 'broker-a': brokerWith([at(-59)]) }))).to.deep.equal([BATCH.batchId]);
  });

  it('ignores a message without our signature, and reports that a key may be missing [S10]', async () => {
    const body = event('order.cancelled');
    const signedFor = TEST_SIGNATURES.sign(TOPICS.purchase, body);
    const foreign = new MessageSignatures(readKeyring('old:another-key-of-tests-that-is-forty-bytes-'));
    const forged = await search({ 'broker-a': brokerWith([{ topic: TOPICS.orderEvent, body, signature: signedFor }]) });
    expect([evidenceOf(forged), forged.silent]).to.deep.equal([[undefined], null]);
    const signature = foreign.sign(TOPICS.orderEvent, body);
    const old = await search({ 'broker-a': brokerWith([{ topic: TOPICS.orderEvent, body, signature }]) });
    expect(evidenceOf(old)).to.deep.equal([undefined]);
    expect(old.silent).to.include('MESSAGE_KEYS');
  });

  it('names a broker that does not answer, and returns the messages of the other brokers', async () => {
    const found = await search({
      'broker-a': () => 'closes',
      'broker-b': brokerWith([{ topic: TOPICS.purchase, body: BATCH.body }]),
    });
    expect(evidenceOf(found)).to.deep.equal([BATCH.batchId]);
    expect(found.silent).to.include('broker-a');
  });
});

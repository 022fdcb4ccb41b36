import { batchIn, type Batch } from '../../core/batch.js';
import { OperationalError } from '../../core/errors.js';
import { type MessageSignatures, SIGNATURE_PROPERTY } from '../../core/message-signatures.js';
import type { Metadata } from '../../core/metadata.js';
import { decodeOrderEvents, type OrderEventType } from '../../core/order-event.js';
import { mintedAtMs } from '../../core/order-id.js';
import { purchaseKey, type Purchase } from '../../core/purchase.js';
import { TOPICS } from '../../core/topics.js';
import { type BrokerAddress, brokersKnownTo } from '../../rocketmq/admin/broker-state.js';
import type { StoredMessage } from '../../rocketmq/admin/decode-messages.js';
import { readOffsetAt, readQueues, walkQueue } from '../../rocketmq/admin/inspect-broker.js';
import { RemotingError } from '../../rocketmq/admin/remoting.js';
import type { BrokerAccess } from '../../rocketmq/credentials.js';
import type { LostOrder } from './resolve-lost.js';

/** The broker's evidence about one lost order. */
export interface Evidence {
  /** The message that contained the purchase. */
  batch?: Batch;
  purchase?: Purchase;
  /** Types of the events that name the order. */
  readonly events: Set<OrderEventType>;
  metadata?: Metadata;
}

/** The evidence by purchase key. `silent` says why the search is incomplete, or is null. */
export interface BrokerSearch {
  readonly found: ReadonlyMap<string, Evidence>;
  readonly silent: string | null;
}

/** @throws OperationalError rocketmq, if no name server knows a broker */
export type SearchBroker = (saleId: string, lost: readonly LostOrder[]) => Promise<BrokerSearch>;

/** A batch usually precedes its order ids by less than a second, but by much more after an outage. */
const BEFORE_MS = 3_600_000;
/** A message that was stored this long after the last lost order got its id contains other purchases. */
const AFTER_MS = 60_000;
/** Maximum number of messages that one search reads, which takes some minutes. */
const MESSAGES_MAX = 1_000_000;

/** Without that key, a genuine message looks like a forged one. */
const OLD_KEY = 'some messages are signed with a key that MESSAGE_KEYS does not have';

/** Trusts only messages with our signature. */
export function createBrokerSearch(
  namesrvAddr: string,
  access: BrokerAccess | null,
  signatures: MessageSignatures,
): SearchBroker {
  return async (saleId, lost) => {
    const evidence = new EvidenceOf(saleId, lost);
    const times = lost.flatMap(({ orderId }) => (orderId === null ? [] : [mintedAtMs(orderId)]));
    if (times.length === 0) return { found: evidence.found, silent: null };
    const first = times.reduce((a, b) => Math.min(a, b));
    const last = times.reduce((a, b) => Math.max(a, b));
    const reads = [
      { topic: TOPICS.purchase, fromMs: first - BEFORE_MS, toMs: last + AFTER_MS },
      { topic: TOPICS.redrive, fromMs: first - BEFORE_MS, toMs: last + AFTER_MS },
      { topic: TOPICS.orderEvent, fromMs: first - AFTER_MS, toMs: Infinity },
    ];
    let [left, silent] = [MESSAGES_MAX, null as string | null];
    for (const broker of await brokersKnownTo(namesrvAddr, access, null)) {
      try {
        for (const { topic, fromMs, toMs } of reads) {
          for await (const { body, properties } of messagesBetween(broker, topic, fromMs, toMs)) {
            if (left-- === 0) return { found: evidence.found, silent: `more than ${MESSAGES_MAX} messages to read` };
            const text = body.toString('utf8');
            const verdict = signatures.check(topic, text, properties[SIGNATURE_PROPERTY]);
            if (verdict === 'unknown_key') silent ??= OLD_KEY;
            if (verdict !== 'signed' && verdict !== 'unsigned_accepted') continue;
            if (topic === TOPICS.orderEvent) evidence.addEvents(text);
            else evidence.addBatch(text);
          }
        }
      } catch (error) {
        if (!(error instanceof RemotingError)) throw error;
        silent = `${broker.name}: ${error.message}`;
      }
    }
    return { found: evidence.found, silent };
  };
}

/** Yields the messages that a broker stored within this time, and some that it stored later. */
async function* messagesBetween(
  broker: BrokerAddress,
  topic: string,
  fromMs: number,
  toMs: number,
): AsyncGenerator<StoredMessage> {
  for (const { queueId, first, end } of await readQueues(broker, topic)) {
    const from = Math.max(first, await readOffsetAt(broker, topic, queueId, fromMs));
    for await (const message of walkQueue(broker, topic, queueId, { from, end })) {
      if (message.storedAtMs > toMs) break;
      yield message;
    }
  }
}

/** Collects what messages say about the lost orders of one sale. */
export class EvidenceOf {
  readonly found = new Map<string, Evidence>();
  readonly #saleId: string;
  readonly #byKey: ReadonlyMap<string, LostOrder>;
  readonly #byOrder: ReadonlyMap<string, LostOrder>;

  constructor(saleId: string, lost: readonly LostOrder[]) {
    this.#saleId = saleId;
    this.#byKey = new Map(lost.map((one) => [purchaseKey(one), one]));
    this.#byOrder = new Map(lost.flatMap((one) => (one.orderId === null ? [] : [[one.orderId, one] as const])));
  }

  addBatch(body: string): void {
    const batch = batchIn(body);
    if (batch?.saleId !== this.#saleId) return;
    for (const purchase of batch.purchases) {
      const key = purchaseKey(purchase);
      // A purchase with a different quantity was refused, because a key is accepted with one quantity only.
      if (this.#byKey.get(key)?.quantity !== purchase.quantity) continue;
      const one = this.#of(key);
      one.batch ??= batch;
      one.purchase ??= purchase;
    }
  }

  addEvents(body: string): void {
    const decoded = decodeOrderEvents(body);
    if (decoded.outcome !== 'decoded') return;
    for (const { type, saleId, orders, metadata } of decoded.events) {
      if (saleId !== this.#saleId) continue;
      for (const orderId of orders) {
        const lost = this.#byOrder.get(orderId);
        if (lost === undefined) continue;
        const one = this.#of(purchaseKey(lost));
        one.events.add(type);
        const note = metadata?.[orderId];
        if (note !== undefined) one.metadata ??= note;
      }
    }
  }

  #of(key: string): Evidence {
    const known = this.found.get(key) ?? { events: new Set() };
    this.found.set(key, known);
    return known;
  }
}

/** Searches nothing, because no name server is configured. */
export const notSearched: SearchBroker = () =>
  Promise.resolve({ found: new Map<string, Evidence>(), silent: 'NAMESRV_ADDR is not set' });

/** If no broker can be asked at all, returns an incomplete search, because the orders can be written without it. */
export async function searchOrSilence(
  search: SearchBroker,
  saleId: string,
  lost: readonly LostOrder[],
): Promise<BrokerSearch> {
  try {
    return await search(saleId, lost);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    return { found: new Map(), silent: error.message };
  }
}

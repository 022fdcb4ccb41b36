import { batchIn } from '../../core/batch.js';
import { OperationalError } from '../../core/errors.js';
import { isSaleId } from '../../core/ids.js';
import { type Purchase, requestName, type RequestRef } from '../../core/purchase.js';
import { type Sale } from '../../core/sale.js';
import { type BucketRef, homeBucket } from '../../core/bucket.js';
import { batchIdOfTrace, typedTraceId } from '../../core/trace-context.js';
import type { TracedDeadLetter } from '../../core/ports/dead-letters.js';
import type { SilentBroker, TraceBroker } from '../../rocketmq/admin/trace-broker.js';
import type { TracePorts, TraceQuery } from './evidence.js';

/** A purchase that matches the id, and the batch in which it was found. */
interface FoundPurchase {
  readonly request: RequestRef;
  readonly batchId: string | null;
}

export interface FoundPurchases {
  readonly purchases: readonly FoundPurchase[];
  /** Why a broker was not asked. Empty if no broker could know more, or if a purchase was found. */
  readonly notAsked: readonly string[];
}

type IsMeant = (purchase: Purchase, batchId: string) => boolean;

interface Search {
  readonly query: TraceQuery;
  readonly sales: readonly Sale[];
  readonly ports: TracePorts;
  readonly max: number;
  readonly signal: AbortSignal | undefined;
}

/** Maximum number of sales to search, newest first. Redis has nothing of retired sales. */
const SALES_MAX = 50;
/** Reading fewer buckets at once would cost more round trips. Reading more would make buyers wait. */
const BUCKETS_AT_ONCE = 4;
const DEAD_LETTERS_MAX = 5;

export const NO_NAME_SERVER = 'NAMESRV_ADDR is not set';
export const sentenceOf = ({ name, why }: SilentBroker): string => `${name}: ${why}`;

/**
 * Finds every matching purchase, cheapest search first: indexes of MySQL and entries of a known buyer, then much of
 * Redis (waiting batches, requests, markers), then dead letters, then the whole table of orders. For a known buyer,
 * reads only the home buckets, and stops after the first search if that finds a purchase. A text that may be a trace id
 * is searched as a trace id first. It is searched as a request id only if that is cheap or nothing was found.
 * @param signal ends the search between two groups of queries
 * @throws OperationalError redis or mysql; the reason of `signal`
 */
export async function findPurchases(
  query: TraceQuery,
  ports: TracePorts,
  max: number,
  signal?: AbortSignal,
): Promise<FoundPurchases> {
  const { repository } = ports;
  const { id, userId } = query;
  const found = new Map<string, FoundPurchase>();
  const add = (more: readonly FoundPurchase[]): void => {
    for (const one of more) {
      const { saleId, userId: buyer } = one.request;
      const key = requestName(saleId, one.request);
      const fits = (query.saleId ?? saleId) === saleId && (userId ?? buyer) === buyer;
      if (fits && !found.has(key) && found.size < max) found.set(key, one);
    }
  };
  const all = (notAsked: readonly string[] = []): FoundPurchases => ({ purchases: [...found.values()], notAsked });
  const search: Search = { query, sales: await salesOf(query, ports), ports, max, signal };
  const traceId = typedTraceId(id);

  if (traceId !== null) add(await recordedOfTrace(traceId, search));
  const inRepository = await repository.findRequests(id, query, max);
  add(inRepository.map((request) => ({ request, batchId: null })));
  // A row identifies a single purchase only if the id was not a request id, which other buyers may have used as well.
  const byRequestId = inRepository.length === 0 || inRepository.some(({ requestId }) => requestId === id);
  if (byRequestId && userId !== undefined) add(await requestsOfBuyer(userId, search));
  if (userId !== undefined && found.size > 0) return all();

  let notAsked: readonly string[] = [];
  if (traceId !== null) {
    add(await unrecordedOfTrace(traceId, found.size > 0, search));
    if (found.size === 0) {
      const halves = await halvesOfTrace(traceId, ports.broker);
      add(halves.purchases);
      ({ notAsked } = halves);
    }
    if (found.size > 0) return all();
  }
  if (byRequestId && userId === undefined) add(await requestsInStore(search));
  if (found.size === 0) add(await batchInStore(id, search));
  if (found.size === 0) {
    const listed = await ports.deadLetters.list({ key: id }, { max: DEAD_LETTERS_MAX });
    add(await purchasesInDeadLetters(listed, ({ requestId }, batchId) => id === requestId || id === batchId, search));
  }
  if (found.size === 0) add(await purchasesOfDeadLetter(id, ports));
  if (found.size === 0 && userId === undefined) {
    signal?.throwIfAborted(); // the requests of a known buyer can be found through an index
    add((await repository.walkForRequest(id, query, max)).map((request) => ({ request, batchId: null })));
  }
  return all(found.size > 0 ? [] : notAsked);
}

export async function salesOf({ saleId }: TraceQuery, { sales }: TracePorts): Promise<Sale[]> {
  if (saleId === undefined) return sales.list({ retired: false, max: SALES_MAX });
  const sale = isSaleId(saleId) ? await sales.find(saleId) : null;
  return sale === null ? [] : [sale];
}

/** Returns all buckets of a sale or, for a known buyer, only the home buckets, which hold the buyer's purchases. */
const bucketsOf = ({ buckets }: Sale, userId: string | undefined): number[] =>
  userId === undefined ? Array.from({ length: buckets }, (_, bucket) => bucket) : [homeBucket(userId, buckets)];

/** Reads a few buckets at once. @returns answers in bucket order; stopping the iteration skips the other buckets */
export async function* askBuckets<T>(
  { query: { userId }, sales, signal }: Pick<Search, 'query' | 'sales' | 'signal'>,
  ask: (ref: BucketRef) => Promise<T>,
): AsyncGenerator<T> {
  const refs = sales.flatMap((sale) => bucketsOf(sale, userId).map((bucket) => ({ saleId: sale.saleId, bucket })));
  for (let from = 0; from < refs.length; from += BUCKETS_AT_ONCE) {
    signal?.throwIfAborted();
    yield* await Promise.all(refs.slice(from, from + BUCKETS_AT_ONCE).map(ask));
  }
}

/** Finds orders of this trace id, or of the batch that has it (`traceIdOfBatch`). */
async function recordedOfTrace(
  traceId: string,
  { query, ports: { repository }, max }: Search,
): Promise<FoundPurchase[]> {
  const recorded = [
    ...(await repository.findByTrace(traceId, query, max)),
    ...(await repository.findRequests(batchIdOfTrace(traceId) ?? '', query, max)),
  ];
  return recorded.map((request) => ({ request, batchId: null }));
}

const isOfTrace =
  (traceId: string): IsMeant =>
  (purchase, batchId) =>
    purchase.traceId === traceId || batchId === batchIdOfTrace(traceId);

/** Searches waiting batches and dead letters. @param isRecorded whether some of the purchases are orders */
async function unrecordedOfTrace(traceId: string, isRecorded: boolean, search: Search): Promise<FoundPurchase[]> {
  const { store, deadLetters } = search.ports;
  const batchId = batchIdOfTrace(traceId) ?? '';
  const isMeant = isOfTrace(traceId);
  const found: FoundPurchase[] = [];
  for await (const bodies of askBuckets(search, (ref) => store.pendingWith(ref, traceId))) {
    found.push(...bodies.flatMap((body) => purchasesIn(body, isMeant)));
  }
  for (const filter of [{ traceId }, { batchId }]) {
    search.signal?.throwIfAborted();
    const listed = await deadLetters.list(filter, { max: DEAD_LETTERS_MAX });
    found.push(...(await purchasesInDeadLetters(listed, isMeant, search)));
  }
  if (found.length === 0 && !isRecorded) found.push(...(await batchInStore(batchId, search)));
  return found;
}

/** The purchases of half messages may have been refused. If a broker is down, the other searches still count. */
async function halvesOfTrace(traceId: string, broker: TraceBroker | null): Promise<FoundPurchases> {
  if (broker === null) return { purchases: [], notAsked: [NO_NAME_SERVER] };
  try {
    const { found, silent } = await broker.halvesOf(traceId);
    const purchases = found.flatMap((body) => purchasesIn(body, isOfTrace(traceId)));
    return { purchases, notAsked: silent.map(sentenceOf) };
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    return { purchases: [], notAsked: [error.message] };
  }
}

async function requestsOfBuyer(userId: string, search: Search): Promise<FoundPurchase[]> {
  const { query, ports } = search;
  const { id: requestId } = query;
  const found: FoundPurchase[] = [];
  const ask = async (ref: BucketRef) => ({ ref, entry: await ports.store.entryOf(ref, userId, requestId) });
  for await (const { ref, entry } of askBuckets(search, ask)) {
    if (entry !== null) found.push({ request: { userId, saleId: ref.saleId, requestId }, batchId: null });
  }
  return found;
}

/** Reads every request in the buckets. */
async function requestsInStore(search: Search): Promise<FoundPurchase[]> {
  const { query, ports, max } = search;
  const { id: requestId } = query;
  const found: FoundPurchase[] = [];
  const ask = async (ref: BucketRef) => ({ ref, users: await ports.store.buyersOf(ref, requestId, max) });
  for await (const { ref, users } of askBuckets(search, ask)) {
    found.push(...users.map((userId) => ({ request: { userId, saleId: ref.saleId, requestId }, batchId: null })));
    if (found.length >= max) break;
  }
  return found;
}

/** Finds a batch that is not recorded, whose marker therefore has the body. */
async function batchInStore(batchId: string, search: Search): Promise<FoundPurchase[]> {
  for await (const { body } of askBuckets(search, (ref) => search.ports.store.readBatch(ref, batchId))) {
    if (body !== null) return purchasesIn(body, () => true);
  }
  return [];
}

async function purchasesInDeadLetters(
  listed: readonly TracedDeadLetter[],
  isMeant: IsMeant,
  { ports: { deadLetters } }: Search,
): Promise<FoundPurchase[]> {
  const found: FoundPurchase[] = [];
  for (const { deadLetterId } of listed) {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter !== null && deadLetter.reason !== 'forged') found.push(...purchasesIn(deadLetter.body, isMeant));
  }
  return found;
}

/** Finds a dead letter by its number. Its batch names the purchases. */
async function purchasesOfDeadLetter(id: string, { deadLetters }: TracePorts): Promise<FoundPurchase[]> {
  const deadLetter = isSaleId(id) ? await deadLetters.find(id) : null; // both are row numbers
  return deadLetter === null || deadLetter.reason === 'forged' ? [] : purchasesIn(deadLetter.body, () => true);
}

function purchasesIn(body: string, isMeant: IsMeant): FoundPurchase[] {
  const batch = batchIn(body);
  if (batch === null) return [];
  const { batchId, saleId, purchases } = batch;
  return purchases
    .filter((purchase) => isMeant(purchase, batchId))
    .map(({ userId, requestId }) => ({ request: { userId, saleId, requestId }, batchId }));
}

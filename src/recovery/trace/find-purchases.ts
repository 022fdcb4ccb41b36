import { decodeBatch } from '../../core/batch.js';
import { isSaleId } from '../../core/ids.js';
import { type Purchase, purchaseKey, type RequestRef } from '../../core/purchase.js';
import { type Sale } from '../../core/sale.js';
import { homeBucket } from '../../core/bucket.js';
import { batchIdOfTrace, typedTraceId } from '../../core/trace-context.js';
import type { DeadLetterSummary } from '../../core/ports/dead-letter-repository.js';
import type { TracePorts, TraceQuery } from './evidence.js';

/** A purchase that matches the id, and the batch that it was found by. */
export interface FoundPurchase {
  readonly request: RequestRef;
  readonly batchId: string | null;
}

/** Whether a purchase of a batch is one that is looked for. */
type IsMeant = (purchase: Purchase, batchId: string) => boolean;

/** Sales searched when none is named, newest first; of retired ones Redis has nothing. */
const SALES_MAX = 50;
const DEAD_LETTERS_MAX = 5;

/**
 * Every purchase that matches the id, cheapest search first: the indexes of MySQL, the requests in Redis, the batches
 * in Redis, the bodies of dead letters, the number of one, and at last the whole table of orders. An id that may be a trace id
 * is looked for as one before.
 * @throws OperationalError redis or mysql
 */
export async function findPurchases(query: TraceQuery, ports: TracePorts, max: number): Promise<FoundPurchase[]> {
  const { repository } = ports;
  const { id } = query;
  const found = new Map<string, FoundPurchase>();
  const add = (more: readonly FoundPurchase[]): void => {
    for (const one of more) {
      const { saleId, userId } = one.request;
      const key = `${saleId}/${purchaseKey(one.request)}`;
      const fits = (query.saleId ?? saleId) === saleId && (query.userId ?? userId) === userId;
      if (fits && !found.has(key) && found.size < max) found.set(key, one);
    }
  };
  const sales = await salesOf(query, ports);
  const traceId = typedTraceId(id);
  if (traceId !== null) add(await purchasesOfTrace(traceId, query, sales, ports, max));
  if (found.size > 0) return [...found.values()];
  const inRepository = await repository.findRequests(id, query, max);
  add(inRepository.map((request) => ({ request, batchId: null })));
  // A row names one purchase only if the id was not that of a request, which other buyers may have used as well.
  const byRequestId = inRepository.length === 0 || inRepository.some(({ requestId }) => requestId === id);
  if (byRequestId) add(await requestsInStore(query, sales, ports, max));
  if (found.size === 0) add(await batchInStore(id, sales, ports));
  if (found.size === 0) {
    const listed = await ports.deadLetters.list({ key: id }, { max: DEAD_LETTERS_MAX });
    add(await purchasesInDeadLetters(listed, ({ requestId }, batchId) => id === requestId || id === batchId, ports));
  }
  if (found.size === 0) add(await purchasesOfDeadLetter(id, ports));
  if (found.size === 0) {
    add((await repository.walkForRequest(id, query, max)).map((request) => ({ request, batchId: null })));
  }
  return [...found.values()];
}

export async function salesOf({ saleId }: TraceQuery, { sales }: Pick<TracePorts, 'sales'>): Promise<Sale[]> {
  if (saleId === undefined) return sales.list({ retired: false, max: SALES_MAX });
  const sale = isSaleId(saleId) ? await sales.find(saleId) : null;
  return sale === null ? [] : [sale];
}

export const bucketsOf = ({ buckets }: Sale): number[] => Array.from({ length: buckets }, (_, bucket) => bucket);

/**
 * Purchases that brought this trace id, or are in the batch that it stands for (`traceIdOfBatch`): in MySQL by index, in Redis
 * among the batches that are not recorded yet, and among dead letters. Where none is, the broker may have it as a half message,
 * which a refusal may have followed.
 */
async function purchasesOfTrace(
  traceId: string,
  query: TraceQuery,
  sales: readonly Sale[],
  ports: TracePorts,
  max: number,
): Promise<FoundPurchase[]> {
  const { repository, store, deadLetters, broker } = ports;
  const batchId = batchIdOfTrace(traceId) ?? '';
  const isMeant: IsMeant = (purchase, ofBatch) => purchase.traceId === traceId || ofBatch === batchId;
  const recorded = [
    ...(await repository.findByTrace(traceId, query, max)),
    ...(await repository.findRequests(batchId, query, max)),
  ];
  const found: FoundPurchase[] = recorded.map((request) => ({ request, batchId: null }));
  for (const sale of sales) {
    for (const bucket of bucketsOf(sale)) {
      const bodies = await store.pendingWith({ saleId: sale.saleId, bucket }, traceId);
      found.push(...bodies.flatMap((body) => purchasesIn(body, isMeant)));
    }
  }
  for (const filter of [{ traceId }, { batchId }]) {
    const listed = await deadLetters.list(filter, { max: DEAD_LETTERS_MAX });
    found.push(...(await purchasesInDeadLetters(listed, isMeant, ports)));
  }
  if (found.length === 0) found.push(...(await batchInStore(batchId, sales, ports)));
  if (found.length > 0 || broker === null) return found;
  const halves = await broker.halvesOf(traceId).catch(() => []); // one that is away hides no other search
  return halves.flatMap((body) => purchasesIn(body, isMeant));
}

async function requestsInStore(
  { id: requestId, userId }: TraceQuery,
  sales: readonly Sale[],
  { store }: TracePorts,
  max: number,
): Promise<FoundPurchase[]> {
  const found: FoundPurchase[] = [];
  for (const { saleId, buckets, ...sale } of sales) {
    if (userId !== undefined) {
      const entry = await store.entryOf({ saleId, bucket: homeBucket(userId, buckets) }, userId, requestId);
      if (entry !== null) found.push({ request: { userId, saleId, requestId }, batchId: null });
      continue;
    }
    for (const bucket of bucketsOf({ saleId, buckets, ...sale })) {
      const users = await store.buyersOf({ saleId, bucket }, requestId, max);
      found.push(...users.map((user) => ({ request: { userId: user, saleId, requestId }, batchId: null })));
    }
    if (found.length >= max) break;
  }
  return found;
}

/** A batch that is not recorded: its marker has the body. */
async function batchInStore(batchId: string, sales: readonly Sale[], { store }: TracePorts): Promise<FoundPurchase[]> {
  for (const sale of sales) {
    for (const bucket of bucketsOf(sale)) {
      const { body } = await store.readBatch({ saleId: sale.saleId, bucket }, batchId);
      if (body !== null) return purchasesIn(body, () => true);
    }
  }
  return [];
}

async function purchasesInDeadLetters(
  listed: readonly DeadLetterSummary[],
  isMeant: IsMeant,
  { deadLetters }: Pick<TracePorts, 'deadLetters'>,
): Promise<FoundPurchase[]> {
  const found: FoundPurchase[] = [];
  for (const { deadLetterId } of listed) {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter !== null && deadLetter.reason !== 'forged') found.push(...purchasesIn(deadLetter.body, isMeant));
  }
  return found;
}

/** By its own number; the batch names the purchases. */
async function purchasesOfDeadLetter(id: string, { deadLetters }: TracePorts): Promise<FoundPurchase[]> {
  const deadLetter = isSaleId(id) ? await deadLetters.find(id) : null; // both are numbers of rows
  return deadLetter === null || deadLetter.reason === 'forged' ? [] : purchasesIn(deadLetter.body, () => true);
}

function purchasesIn(body: string, isMeant: IsMeant): FoundPurchase[] {
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') return [];
  const { batchId, saleId, purchases } = decoded.batch;
  return purchases
    .filter((purchase) => isMeant(purchase, batchId))
    .map(({ userId, requestId }) => ({ request: { userId, saleId, requestId }, batchId }));
}

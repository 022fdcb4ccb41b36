import { decodeBatch } from '../../core/batch.js';
import { isSaleId } from '../../core/ids.js';
import { purchaseKey, type RequestRef } from '../../core/purchase.js';
import { type Sale } from '../../core/sale.js';
import { homeBucket } from '../../core/bucket.js';
import type { TracePorts, TraceQuery } from './evidence.js';

/** A purchase that matches the id, and the batch that it was found by. */
export interface FoundPurchase {
  readonly request: RequestRef;
  readonly batchId: string | null;
}

/** Sales searched when none is named, newest first; of retired ones Redis has nothing. */
const SALES_MAX = 50;
const DEAD_LETTERS_MAX = 5;

/**
 * Every purchase that matches the id, cheapest search first: the indexes of MySQL, the requests in Redis, the batches
 * in Redis, the bodies of dead letters, the number of one, and at last the whole table of orders.
 * @throws OperationalError redis or mysql
 */
export async function findPurchases(query: TraceQuery, ports: TracePorts, max: number): Promise<FoundPurchase[]> {
  const { repository } = ports;
  const { id } = query;
  const inRepository = await repository.findRequests(id, query, max);
  const found = new Map<string, FoundPurchase>();
  const add = (more: readonly FoundPurchase[]): void => {
    for (const one of more) {
      const { saleId, userId } = one.request;
      const key = `${saleId}/${purchaseKey(one.request)}`;
      const fits = (query.saleId ?? saleId) === saleId && (query.userId ?? userId) === userId;
      if (fits && !found.has(key) && found.size < max) found.set(key, one);
    }
  };
  add(inRepository.map((request) => ({ request, batchId: null })));
  const sales = await salesOf(query, ports);
  // A row names one purchase only if the id was not that of a request, which other buyers may have used as well.
  const byRequestId = inRepository.length === 0 || inRepository.some(({ requestId }) => requestId === id);
  if (byRequestId) add(await requestsInStore(query, sales, ports, max));
  if (found.size === 0) add(await batchInStore(id, sales, ports));
  if (found.size === 0) add(await purchasesInDeadLetters(id, ports));
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

async function purchasesInDeadLetters(id: string, { deadLetters }: TracePorts): Promise<FoundPurchase[]> {
  const found: FoundPurchase[] = [];
  for (const { deadLetterId, batchId } of await deadLetters.list({ key: id }, { max: DEAD_LETTERS_MAX })) {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter !== null && deadLetter.reason !== 'forged')
      found.push(...purchasesIn(deadLetter.body, (requestId) => batchId === id || requestId === id));
  }
  return found;
}

/** By its own number; the batch names the purchases. */
async function purchasesOfDeadLetter(id: string, { deadLetters }: TracePorts): Promise<FoundPurchase[]> {
  const deadLetter = isSaleId(id) ? await deadLetters.find(id) : null; // both are numbers of rows
  return deadLetter === null || deadLetter.reason === 'forged' ? [] : purchasesIn(deadLetter.body, () => true);
}

function purchasesIn(body: string, isMeant: (requestId: string) => boolean): FoundPurchase[] {
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') return [];
  const { batchId, saleId, purchases } = decoded.batch;
  return purchases
    .filter(({ requestId }) => isMeant(requestId))
    .map(({ userId, requestId }) => ({ request: { userId, saleId, requestId }, batchId }));
}

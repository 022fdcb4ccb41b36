import { batchIn } from '../../core/batch.js';
import { type BucketRef, bucketRefsOf, homeBucket } from '../../core/bucket.js';
import { otherCell } from '../../core/cell.js';
import { OperationalError } from '../../core/errors.js';
import { isOrderId } from '../../core/ids.js';
import { isLive } from '../../core/order.js';
import { batchOfEntry } from '../../core/outcome.js';
import type { StoredAuditEntry } from '../../core/ports/audit-log.js';
import type { TracedDeadLetter } from '../../core/ports/dead-letters.js';
import { purchaseKey, type RequestRef } from '../../core/purchase.js';
import type { Sale } from '../../core/sale.js';
import { batchIdOfTrace, traceIdOfBatch, typedTraceId } from '../../core/trace-context.js';
import type { SilentBroker, TraceBroker } from '../../rocketmq/admin/trace-broker.js';
import type { PurchaseEvidence, StoreEvidence, TracePorts, TraceQuery } from './evidence.js';
import { askBuckets, findPurchases, NO_NAME_SERVER, salesOf, sentenceOf } from './find-purchases.js';
import { type Standing, type StandingLimits, standingOf } from './standing-of.js';
import { stepsOf, type TraceStep } from './steps-of.js';
import { timelineOf, type TimelineStage } from './timeline-of.js';
import type { OrderTrace } from './trace-repository.js';

/** A refusal leaves only its batch's marker and the state of the sale. @param notAsked why no broker was asked */
async function whyNotFound(
  query: TraceQuery,
  ports: TracePorts,
  notAsked: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const { id, saleId, userId } = query;
  const who = `${userId === undefined ? '' : ` of buyer ${userId}`}${saleId === undefined ? '' : ` in sale ${saleId}`}`;
  const isNarrow = saleId !== undefined || userId !== undefined;
  const searched = isNarrow
    ? ''
    : ' Only the newest sales and orders were searched. Use --sale or --user to find older ones.';
  const why =
    notAsked.length === 0
      ? '. It never arrived, or it was refused, which leaves no trace.'
      : `. RocketMQ may have its half message, but was not asked (${notAsked.join('; ')}), so it may have arrived.`;
  const cell = isOrderId(id) ? otherCell(ports.cell, { orderId: id }) : null;
  const elsewhere = cell === null ? '' : ` An order with this id is in cell ${cell}.`;
  const none = `Neither Redis nor MySQL knows ${id}${who}${why}${elsewhere}${searched}`;
  const sales = await salesOf(query, ports);
  if (saleId !== undefined && sales.length === 0) return `There is no sale ${saleId}.`;
  const ofTrace = batchIdOfTrace(typedTraceId(id) ?? '');
  for (const batchId of ofTrace === null ? [id] : [ofTrace, id]) {
    const ask = async (ref: BucketRef) => ({ ref, ...(await ports.store.readBatch(ref, batchId)) });
    for await (const { ref, marker } of askBuckets({ query, sales, signal }, ask)) {
      if (marker === 'aborted')
        return `Batch ${batchId} of sale ${ref.saleId} was rolled back: no unit was held for it.`;
    }
  }
  const [sale] = sales;
  if (saleId === undefined || userId === undefined || sale === undefined) {
    return `${none} Add --sale and --user to see the answer that the buyer would get now.`;
  }
  if (sale.retiredAtMs !== null) return `${none} The sale is retired, so a request now would be answered closed.`;
  const ref = { saleId, bucket: homeBucket(userId, sale.buckets) };
  const { answers } = await ports.stock.precheck(ref, [{ userId, requestId: id, quantity: 1 }]);
  const word = answers[0]?.outcome;
  return `${none} A request for one unit now would be ${word === undefined ? 'accepted' : `answered ${word}`}.`;
}

export interface PurchaseTrace {
  readonly request: RequestRef;
  /** The trace id of the caller if it is stored, otherwise the trace id of the batch. Null if no batch is known. */
  readonly traceId: string | null;
  readonly standing: Standing;
  readonly steps: readonly TraceStep[];
  readonly timeline: readonly TimelineStage[];
}

/** `found`: `more` says whether other purchases match. `not_found`: `why` is a sentence about what that may mean. */
export type TraceAnswer =
  | { readonly outcome: 'found'; readonly traces: readonly PurchaseTrace[]; readonly more: boolean }
  | { readonly outcome: 'not_found'; readonly why: string };

/** Maximum number of purchases shown. A batch may have many, and several buyers may use the same id. */
export const TRACES_MAX = 20;
const DEAD_LETTERS_MAX = 20;
const AUDIT_MAX = 20;

/** Changes nothing. */
export class TracePurchase {
  readonly #ports: TracePorts;
  readonly #limits: StandingLimits;

  constructor(ports: TracePorts, limits: StandingLimits) {
    this.#ports = ports;
    this.#limits = limits;
  }

  /** @param signal ends the search between queries. @throws OperationalError redis or mysql; the reason of `signal` */
  async trace(query: TraceQuery, signal?: AbortSignal): Promise<TraceAnswer> {
    const { purchases, notAsked } = await findPurchases(query, this.#ports, TRACES_MAX + 1, signal);
    if (purchases.length === 0) {
      return { outcome: 'not_found', why: await whyNotFound(query, this.#ports, notAsked, signal) };
    }
    const traces: PurchaseTrace[] = [];
    const broker = new AskedBrokers(this.#ports.broker);
    for (const { request, batchId } of purchases.slice(0, TRACES_MAX)) {
      signal?.throwIfAborted();
      const evidence = await this.#gather(request, batchId, broker);
      traces.push({
        request,
        traceId: traceIdIn(evidence),
        standing: standingOf(evidence, this.#limits),
        steps: stepsOf(evidence),
        timeline: timelineOf(evidence, this.#limits),
      });
    }
    return { outcome: 'found', traces, more: purchases.length > TRACES_MAX };
  }

  /** Redis is read before MySQL, so that a purchase that is recorded in between shows as recorded and never as lost. */
  async #gather(request: RequestRef, knownBatchId: string | null, asked: AskedBrokers): Promise<PurchaseEvidence> {
    const { sales, repository, deadLetters, jobs } = this.#ports;
    const { userId, saleId, requestId } = request;
    const sale = await sales.find(saleId);
    const early = await this.#readStore(request, sale, knownBatchId);
    const trace = await repository.read(request);
    const batchId = trace.order?.batchId ?? early.batch?.batchId ?? null;
    const [store, found, ofBatch, ofRequest, messages] = await Promise.all([
      this.#withBatch(early, request, sale, trace.order, batchId),
      batchId === null ? [] : deadLetters.list({ batchId }, { max: DEAD_LETTERS_MAX }),
      batchId === null ? [] : jobs.byBatch(batchId),
      jobs.byRequest(saleId, userId, requestId),
      asked.messagesOf(batchId),
    ]);
    const own = ofBatch.filter((job) => job.requestId === null || purchaseKey(request) === keyOf(job));
    const allJobs = [...new Map([...ofRequest, ...own].map((job) => [job.jobId, job])).values()];
    return {
      request,
      sale,
      store,
      repository: trace,
      deadLetters: found,
      jobs: allJobs,
      ...messages,
      audit: await this.#readAudit([
        ...(trace.order === null ? [] : [`order:${trace.order.orderId}`]),
        ...found.map(({ deadLetterId }: TracedDeadLetter) => `dead_letter:${deadLetterId}`),
        ...allJobs.map(({ jobId }) => `compensation_job:${jobId}`),
      ]),
    };
  }

  async #readStore(
    { userId, saleId, requestId }: RequestRef,
    of: Sale | null,
    knownBatchId: string | null,
  ): Promise<StoreEvidence> {
    const { stock, store } = this.#ports;
    const buckets = of?.buckets ?? 1;
    const ref = { saleId, bucket: homeBucket(userId, buckets) };
    const retired = isRetired(of);
    const [found, buyerUnits, sales] = await Promise.all([
      retired ? null : stock.findRequest(ref, userId, requestId),
      store.unitsOf(ref, userId),
      Promise.all(bucketRefsOf({ saleId, buckets }).map((one) => stock.readSale(one))),
    ]);
    const unsure = found === 'unsure';
    const entry = unsure || retired ? await store.entryOf(ref, userId, requestId) : found;
    const batchId = (entry && batchOfEntry(entry)) ?? knownBatchId;
    const batch = batchId === null ? null : await this.#readBatch(ref, batchId);
    const unitsLeft = sales.reduce((sum, sale) => sum + (sale?.unitsLeft ?? 0), 0);
    return { sale: sales[ref.bucket] ?? null, unitsLeft, buyerUnits, entry, unsure, batch };
  }

  /**
   * Reads Redis again with the batch that MySQL names, because an order's entry names none. Rereads everything if the
   * row is newer than the first read, or if the order has ended and its units may have gone back.
   */
  async #withBatch(
    early: StoreEvidence,
    request: RequestRef,
    of: Sale | null,
    order: OrderTrace['order'],
    batchId: string | null,
  ): Promise<StoreEvidence> {
    if (batchId === null) return early;
    const hasEnded = order !== null && !isLive(order.state);
    if (early.batch?.batchId === batchId && !hasEnded) return early;
    const mayHaveMoved = hasEnded || early.entry === null || early.batch !== null;
    if (!isRetired(of) && mayHaveMoved) return this.#readStore(request, of, batchId);
    const ref = { saleId: request.saleId, bucket: homeBucket(request.userId, of?.buckets ?? 1) };
    return { ...early, batch: await this.#readBatch(ref, batchId) };
  }

  async #readBatch(ref: BucketRef, batchId: string): Promise<StoreEvidence['batch']> {
    return { batchId, ...(await this.#ports.store.readBatch(ref, batchId)) };
  }

  async #readAudit(subjects: readonly string[]): Promise<StoredAuditEntry[]> {
    const found: StoredAuditEntry[] = [];
    for (const subject of subjects) found.push(...(await this.#ports.audit.list({ subject }, { max: AUDIT_MAX })));
    return found.sort((a, b) => a.atMs - b.atMs || Number(BigInt(a.auditId) - BigInt(b.auditId)));
  }
}

/** Asks a silent broker only once per trace, because traces are needed most when a server is down. */
class AskedBrokers {
  readonly #broker: TraceBroker | null;
  readonly #known = new Map<string, AskedMessages>();
  readonly #silent = new Map<string, SilentBroker>();
  #failure: string | null = null;

  constructor(broker: TraceBroker | null) {
    this.#broker = broker;
  }

  /** Never rejects with a fault. */
  async messagesOf(batchId: string | null): Promise<AskedMessages> {
    if (this.#broker === null) return notAsked(NO_NAME_SERVER);
    if (batchId === null) return notAsked('no batch is known');
    if (this.#failure !== null) return notAsked(this.#failure);
    const known = this.#known.get(batchId);
    if (known !== undefined) return known;
    try {
      const { found, silent } = await this.#broker.messagesOf(batchId, new Set(this.#silent.keys()));
      for (const one of silent) this.#silent.set(one.name, one);
      const messages = { broker: found, silentBrokers: [...this.#silent.values()].map(sentenceOf) };
      this.#known.set(batchId, messages);
      return messages;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#failure = error.message;
      return notAsked(this.#failure);
    }
  }
}

/** Whether the sale is retired, so that Redis certainly knows nothing of it. */
const isRetired = (sale: Sale | null): boolean => sale !== null && sale.retiredAtMs !== null;

type AskedMessages = Pick<PurchaseEvidence, 'broker' | 'silentBrokers'>;
const notAsked = (broker: string): AskedMessages => ({ broker, silentBrokers: [] });

function traceIdIn({ request, store: { batch }, repository: { order } }: PurchaseEvidence): string | null {
  const purchases = batchIn(batch?.body ?? null)?.purchases ?? [];
  const own = purchases.find((purchase) => purchaseKey(purchase) === purchaseKey(request));
  const batchId = order?.batchId ?? batch?.batchId;
  return order?.traceId ?? own?.traceId ?? (batchId === undefined ? null : traceIdOfBatch(batchId));
}

const keyOf = ({ userId, requestId }: { readonly userId: string | null; readonly requestId: string | null }): string =>
  `${userId}/${requestId}`;

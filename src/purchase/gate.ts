import type { Metadata } from '../core/metadata.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { Span } from '../core/ports/tracing.js';
import { homeBucketOf } from '../core/bucket.js';
import type { HotSales } from '../sales/hot-sales.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';
import type { Batcher } from './batcher.js';
import { answerClosed, type ClosedSalePorts } from './closed-sale.js';
import type { SoldOutFlags } from './sold-out-flags.js';

export interface GateParts extends ClosedSalePorts {
  readonly snapshots: SaleSnapshots;
  readonly flags: SoldOutFlags;
  readonly batcher: Batcher;
  readonly clock: Clock;
  /** Counts purchase attempts by sale to find hot sales. If omitted, nothing is counted. */
  readonly hot?: HotSales | undefined;
  /** Smooths the purchase rate. Returns null to proceed now, or a promise to wait for. */
  readonly smooth?: () => null | Promise<void> | 'rate_limited';
}

export interface PurchaseRequest {
  readonly saleId: string;
  /** The user id from the token. */
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly metadata?: Metadata | undefined;
  /** The trace id to store with the purchase. If absent, none is stored. */
  readonly traceId?: string | undefined;
  /** Absent or null if the purchase is not traced. */
  readonly span?: Span | null;
}

export function isSaleSoldOut(
  saleId: string,
  { snapshots, flags }: { readonly snapshots: SaleSnapshots; readonly flags: SoldOutFlags },
): boolean {
  const found = snapshots.peek(saleId);
  return found?.snapshot === 'ready' && flags.isSoldOut(found.sale);
}

/** Starts the main path: finds the sale, refuses sold-out purchases from memory, submits the others to the batcher. */
export class PurchaseGate {
  readonly #parts: GateParts;

  constructor(parts: GateParts) {
    this.#parts = parts;
  }

  /** Counts a purchase attempt that reached the sale, no matter how it ends. */
  countAttempt(saleId: string): void {
    this.#parts.hot?.countAttempt(saleId);
  }

  /**
   * Refuses a purchase from memory, before its body is read; null: call `enter`. Never refuses a buyer with an accepted
   * purchase, because a repeat of it gets its current state.
   */
  refuseEarly(saleId: string, userId: string): 'sold_out' | null {
    const snapshot = this.#parts.snapshots.peek(saleId);
    if (snapshot?.snapshot !== 'ready') return null;
    const bucket = homeBucketOf(snapshot.sale, userId);
    return this.#parts.flags.refuses(bucket, userId) ? 'sold_out' : null;
  }

  /** @throws OperationalError redis or mysql, if the sale cannot be looked up */
  async enter(request: PurchaseRequest): Promise<PurchaseOutcome> {
    const { snapshots, flags, batcher, clock, smooth } = this.#parts;
    const found = snapshots.get(request.saleId);
    const snapshot = found instanceof Promise ? await found : found;
    if (snapshot.snapshot === 'announced') {
      return { outcome: clock.nowMs() < snapshot.sale.closesAtMs ? 'not_open' : 'closed' };
    }
    if (snapshot.snapshot !== 'ready') return { outcome: snapshot.snapshot };
    const { userId, span = null } = request;
    const bucket = homeBucketOf(snapshot.sale, userId);
    const purchase = purchaseOf(request);
    if (flags.refuses(bucket, userId)) return { outcome: 'sold_out' };
    const turn = smooth?.() ?? null;
    if (turn === 'rate_limited') return { outcome: turn };
    if (turn !== null) await turn;
    if (snapshot.sale.state !== 'closed') return batcher.submit(bucket, purchase, span);
    const ask = (): Promise<PurchaseOutcome> => batcher.submit(bucket, purchase, span);
    return answerClosed(snapshot.sale, purchase, ask, this.#parts);
  }
}

function purchaseOf({ userId, requestId, quantity, metadata, traceId }: PurchaseRequest): Purchase {
  const purchase: { -readonly [K in keyof Purchase]: Purchase[K] } = { userId, requestId, quantity };
  if (metadata !== undefined) purchase.metadata = metadata;
  if (traceId !== undefined) purchase.traceId = traceId;
  return purchase;
}

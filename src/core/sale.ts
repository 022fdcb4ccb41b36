/** States of a sale that sells or may still sell. Redis has such a sale. */
export const LIVE_STATES = ['warm', 'open', 'paused'] as const;
export const SALE_STATES = ['draft', ...LIVE_STATES, 'closed'] as const;
export type SaleState = (typeof SALE_STATES)[number];

/** States of a bucket. `repair` exists in Redis only: the bucket is being rebuilt, and purchases are refused. */
export const STORED_SALE_STATES = [...LIVE_STATES, 'closed', 'repair'] as const;
export type StoredSaleState = (typeof STORED_SALE_STATES)[number];

/** All moves of a sale. Nothing else changes `sales.state`. */
export const SALE_TRANSITIONS: Record<SaleState, readonly SaleState[]> = {
  draft: ['warm'],
  warm: ['open', 'closed'],
  open: ['paused', 'closed'],
  paused: ['open', 'closed'],
  closed: [],
};

/** Returns the audit action of a move. A move from `paused` to `open` is a resume. */
export function saleAction(from: SaleState, to: SaleState): string {
  if (from === 'paused' && to === 'open') return 'sale.resumed';
  return `sale.${SALE_ACTIONS[to]}`;
}

const SALE_ACTIONS: Record<SaleState, string> = {
  draft: 'created',
  warm: 'warmed',
  open: 'opened',
  paused: 'paused',
  closed: 'closed',
};

/** An item offered in a time window. Money in the smallest unit of its currency, times in Unix ms. */
export interface Sale {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  /** Currency of the price and of all orders, three letters of ISO 4217. */
  readonly currency: string;
  /** Total units offered. */
  readonly stock: number;
  /** Units of live orders, counted by MySQL. */
  readonly sold: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** The keeper runs this sale and warms it this long before it opens. Null: a person runs it. */
  readonly warmBeforeMs: number | null;
  /** Time that a buyer has to pay. Null: ORDER_PAYMENT_WINDOW_MS. */
  readonly paymentWindowMs: number | null;
  /** Terms of the coupons for its paid orders, such as `10% 30d`. Absent or null: they cannot be used. */
  readonly coupon?: string | null;
  readonly state: SaleState;
  /** Starts at 1 and rises by one whenever the Redis side of the sale is rebuilt. */
  readonly epoch: number;
  /** When the closed sale was retired: since then it is in MySQL alone, and Redis forgets it. Null: not yet. */
  readonly retiredAtMs: number | null;
}

/** Returns when the keeper next acts on a sale that is not closed. Null: a person runs it. */
export function stepDueMs({ state, opensAtMs, closesAtMs, warmBeforeMs }: Sale): number | null {
  if (warmBeforeMs === null) return null;
  return state === 'draft' || state === 'warm' ? opensAtMs - warmBeforeMs : closesAtMs;
}

/** The state of a sale that an automatic step is based on. The step is skipped if any of it has changed since. */
export type SeenSale = Pick<Sale, 'state' | 'epoch' | 'opensAtMs' | 'closesAtMs' | 'warmBeforeMs'>;

export const isAsSeen = (sale: Sale, seen: SeenSale): boolean =>
  sale.state === seen.state &&
  sale.epoch === seen.epoch &&
  sale.opensAtMs === seen.opensAtMs &&
  sale.closesAtMs === seen.closesAtMs &&
  sale.warmBeforeMs === seen.warmBeforeMs;

export type NewSale = Omit<Sale, 'saleId' | 'sold' | 'state' | 'epoch' | 'retiredAtMs'>;

/**
 * The sale as the gate sees it. A separate flag says whether it is sold out.
 * - `announced`: a draft that the keeper warms; Redis does not have it yet
 * - `loading`: another process is reading the sale right now, ask again
 */
export type SaleSnapshot =
  | { readonly snapshot: 'ready' | 'announced'; readonly sale: Sale }
  | { readonly snapshot: 'not_found' | 'loading' };

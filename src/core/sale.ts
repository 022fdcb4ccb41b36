/** States of a sale that sells or may still sell. Redis holds such a sale. */
export const LIVE_STATES = ['warm', 'open', 'paused'] as const;
export const SALE_STATES = ['draft', ...LIVE_STATES, 'closed'] as const;
export type SaleState = (typeof SALE_STATES)[number];

/** States of a bucket. `repair` exists only in Redis: the bucket is being rebuilt, and purchases are refused. */
export const STORED_SALE_STATES = [...LIVE_STATES, 'closed', 'repair'] as const;
export type StoredSaleState = (typeof STORED_SALE_STATES)[number];

/** All possible moves of a sale. Nothing else changes `sales.state`. */
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
  /** How long before the opening the keeper, which runs this sale, warms it. Null if a person runs it. */
  readonly warmBeforeMs: number | null;
  /** How long a buyer has to pay. Null: ORDER_PAYMENT_WINDOW_MS. */
  readonly paymentWindowMs: number | null;
  /** Terms of the coupons of paid orders, such as `10% 30d`. Null or absent: no coupons. */
  readonly coupon?: string | null;
  readonly state: SaleState;
  /** Starts at 1. Rises by one whenever the sale in Redis is rebuilt. */
  readonly epoch: number;
  /** When the sale was retired: from then on, only MySQL has it, and Redis forgets it. Null if not retired. */
  readonly retiredAtMs: number | null;
}

/** Returns when the keeper next acts on a sale that is not closed. Null if a person runs it. */
export function stepDueMs({ state, opensAtMs, closesAtMs, warmBeforeMs }: Sale): number | null {
  if (warmBeforeMs === null) return null;
  return state === 'draft' || state === 'warm' ? opensAtMs - warmBeforeMs : closesAtMs;
}

/** The state of a sale on which an automatic step is based. If any of it has changed, the step is skipped. */
export type SeenSale = Pick<Sale, 'state' | 'epoch' | 'opensAtMs' | 'closesAtMs' | 'warmBeforeMs'>;

export const isAsSeen = (sale: Sale, seen: SeenSale): boolean =>
  sale.state === seen.state &&
  sale.epoch === seen.epoch &&
  sale.opensAtMs === seen.opensAtMs &&
  sale.closesAtMs === seen.closesAtMs &&
  sale.warmBeforeMs === seen.warmBeforeMs;

export type NewSale = Omit<Sale, 'saleId' | 'sold' | 'state' | 'epoch' | 'retiredAtMs'>;

/**
 * A sale as the gate sees it. Whether it is sold out is a separate flag.
 * - `announced`: a draft that the keeper will warm; Redis does not have it yet
 * - `loading`: another process is reading the sale; ask again
 */
export type SaleSnapshot =
  | { readonly snapshot: 'ready' | 'announced'; readonly sale: Sale }
  | { readonly snapshot: 'not_found' | 'loading' };

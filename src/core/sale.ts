/** States of a sale that sells or may still sell; Redis has it then. */
export const LIVE_STATES = ['warm', 'open', 'paused'] as const;
export const SALE_STATES = ['draft', ...LIVE_STATES, 'closed'] as const;
export type SaleState = (typeof SALE_STATES)[number];

/** Of a bucket. `repair` exists in Redis only: the bucket is being rebuilt, and purchases are refused. */
export const STORED_SALE_STATES = [...LIVE_STATES, 'closed', 'repair'] as const;
export type StoredSaleState = (typeof STORED_SALE_STATES)[number];

/** Every move a sale may make. Nothing else changes `sales.state`. */
export const SALE_TRANSITIONS: Record<SaleState, readonly SaleState[]> = {
  draft: ['warm'],
  warm: ['open', 'closed'],
  open: ['paused', 'closed'],
  paused: ['open', 'closed'],
  closed: [],
};

/** What the audit log calls a move; one out of `paused` is a resume. */
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

/** One item offered in a window. Money in the smallest unit of its currency, times in Unix ms. */
export interface Sale {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  /** Of the price and of all orders, three letters of ISO 4217. */
  readonly currency: string;
  /** Units offered in all. */
  readonly stock: number;
  /** Units of live orders, as MySQL counts them. */
  readonly sold: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** The keeper runs this sale, and warms it so long before it opens; null: a person moves it. */
  readonly warmBeforeMs: number | null;
  readonly state: SaleState;
  /** Raised by one whenever the Redis side of the sale is rebuilt; starts at 1. */
  readonly epoch: number;
  /** Since then a closed sale is in MySQL alone, and Redis forgets it; null: not yet. */
  readonly retiredAtMs: number | null;
}

/** From when on the keeper has something to do for a sale that is not closed; null: a person moves it. */
export function stepDueMs({ state, opensAtMs, closesAtMs, warmBeforeMs }: Sale): number | null {
  if (warmBeforeMs === null) return null;
  return state === 'draft' || state === 'warm' ? opensAtMs - warmBeforeMs : closesAtMs;
}

/** What an automatic step has seen of a sale; it is not made if any of it has changed since. */
export type SeenSale = Pick<Sale, 'state' | 'epoch' | 'opensAtMs' | 'closesAtMs' | 'warmBeforeMs'>;

export const isAsSeen = (sale: Sale, seen: SeenSale): boolean =>
  sale.state === seen.state &&
  sale.epoch === seen.epoch &&
  sale.opensAtMs === seen.opensAtMs &&
  sale.closesAtMs === seen.closesAtMs &&
  sale.warmBeforeMs === seen.warmBeforeMs;

export type NewSale = Omit<Sale, 'saleId' | 'sold' | 'state' | 'epoch' | 'retiredAtMs'>;

/**
 * The sale as the gate has it. Whether it is sold out is a separate flag.
 * `loading`: another process is reading it right now, ask again.
 */
export type SaleSnapshot =
  | { readonly snapshot: 'ready'; readonly sale: Sale }
  | { readonly snapshot: 'not_found' | 'loading' };

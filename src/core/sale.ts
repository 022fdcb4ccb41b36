export const SALE_STATES = ['draft', 'warm', 'open', 'paused', 'closed'] as const;
export type SaleState = (typeof SALE_STATES)[number];

/** The state that only Redis knows: books are being rebuilt, nobody may buy. */
export type StoredSaleState = Exclude<SaleState, 'draft'> | 'repair';

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

/** One item offered in a window. Money in integer cents, times in Unix ms. */
export interface Sale {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  /** Units offered in all. */
  readonly stock: number;
  /** Units of live orders, as MySQL counts them. */
  readonly sold: number;
  readonly limitPerBuyer: number;
  readonly buckets: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  readonly state: SaleState;
  /** Raised by one whenever the Redis side of the sale is rebuilt; starts at 1. */
  readonly epoch: number;
}

export type NewSale = Omit<Sale, 'saleId' | 'sold' | 'state' | 'epoch'>;

/**
 * What the gate knows of a sale (P1 READY / NOT_FOUND / LOADING; SOLD_OUT is the local flag).
 * `loading`: another process is reading it right now, ask again.
 */
export type SaleSnapshot =
  { readonly snapshot: 'ready'; readonly sale: Sale } | { readonly snapshot: 'not_found' | 'loading' };

/**
 * The bucket a buyer belongs to while the sale has so many. FNV-1a over the user id. Units move between buckets; buyers
 * only when the sale is scattered.
 */
export function homeBucket(userId: string, buckets: number): number {
  if (buckets === 1) return 0;
  return hash32(userId) % buckets;
}

/**
 * The bucket of a buyer, and each that may have been his before: a sale is only ever scattered into a multiple of its
 * buckets. No earlier one has a higher number.
 */
export function homesEver(userId: string, buckets: number): number[] {
  if (buckets === 1) return [0];
  const hash = hash32(userId);
  const homes = new Set<number>();
  for (let earlier = 1; earlier <= buckets; earlier++) if (buckets % earlier === 0) homes.add(hash % earlier);
  return [...homes];
}

/** The units that a bucket begins with: even shares, the first buckets take what is left over. */
export function unitsOfBucket(sale: Pick<Sale, 'stock' | 'buckets'>, bucket: number): number {
  return Math.floor(sale.stock / sale.buckets) + (bucket < sale.stock % sale.buckets ? 1 : 0);
}

/** FNV-1a, 32 bits. Stable across releases: stored ids and buckets depend on it. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

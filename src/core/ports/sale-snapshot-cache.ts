import type { Sale } from '../sale.js';

/** What the shared cache says of a sale. `missing`: nobody has loaded it; `absent`: it does not exist. */
export type CachedSnapshot =
  { readonly cached: 'ready'; readonly sale: Sale } | { readonly cached: 'absent' } | { readonly cached: 'missing' };

/** The middle layer of the sale card: memory → this → MySQL. */
export interface SaleSnapshotCache {
  /** @throws OperationalError redis */
  read(saleId: string): Promise<CachedSnapshot>;

  /**
   * The right to load one card from MySQL, for at most `holdMs`; false while another process has it.
   * @throws OperationalError redis
   */
  lock(saleId: string, holdMs: number): Promise<boolean>;

  /**
   * Keeps what MySQL said (null: no such sale) and frees the lock.
   * @throws OperationalError redis
   */
  write(saleId: string, sale: Sale | null): Promise<void>;

  /**
   * Forgets a card after its sale has changed.
   * @throws OperationalError redis
   */
  forget(saleId: string): Promise<void>;
}

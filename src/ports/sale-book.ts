import type { NewSale, Sale, SaleState } from '../domain/sale.js';

/** The sales as their owner keeps them, in MySQL. */
export interface SaleBook {
  /** @throws OperationalError mysql */
  create(sale: NewSale): Promise<Sale>;

  /** @throws OperationalError mysql */
  find(saleId: string): Promise<Sale | null>;

  /**
   * Sales, newest first.
   * @throws OperationalError mysql
   */
  list(filter: { readonly states?: readonly SaleState[]; readonly max: number }): Promise<Sale[]>;

  /**
   * Moves a sale to `to` if it stands in a state that may go there (SALE_TRANSITIONS), or is there already.
   * @returns the sale as it now is and whether it is in `to`; null when there is no such sale
   * @throws OperationalError mysql
   */
  move(saleId: string, to: SaleState): Promise<{ readonly sale: Sale; readonly moved: boolean } | null>;
}

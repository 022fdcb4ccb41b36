import type { FieldError } from '../field-errors.js';
import type { Sale } from '../sale.js';
import type { CalendarEntry } from './sale-repository.js';

/** The fields of a sale to change. Absent fields stay unchanged. */
export interface SaleChange {
  readonly title?: string;
  readonly priceCents?: number;
  readonly closesAtMs?: number;
  /** Total units offered. */
  readonly stock?: number;
  /** Time to pay, for orders recorded after the change. */
  readonly paymentWindowMs?: number;
  /** Terms of coupons issued after the change. Null: no coupons. */
  readonly coupon?: string | null;
}

/** A change of a loaded sale that must also be made in Redis: its units, the end of its window, or both. */
export interface SaleEdit {
  /** Decimal; grows within a sale. */
  readonly editId: string;
  readonly saleId: string;
  /** Units to add. If negative, units to take: MySQL lowers the stock only after Redis has given them up. */
  readonly units: number;
  /** The epoch of the sale when MySQL was changed. For units to take, the epoch when Redis was last asked for them. */
  readonly epoch: number;
}

/** `begun` until Redis has made the change. `refused`: too few free units; nothing was changed. */
export type EditState = 'begun' | 'done' | 'refused';

export type EditBegun =
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'wrong'; readonly errors: readonly FieldError[] }
  /** An earlier edit must be finished first. */
  | { readonly outcome: 'busy'; readonly edit: SaleEdit }
  /** MySQL has made the change, except for units to take. If there is no edit, Redis has nothing to change. */
  | { readonly outcome: 'begun'; readonly sale: Sale; readonly edit: SaleEdit | null };

/** Changes of sales in MySQL, each with its audit entry. Methods throw OperationalError mysql. */
export interface SaleEdits {
  /**
   * Makes the first part of a change, one sale at a time. A change of data that Redis loads from a draft begins a new
   * epoch, so a load of older data is noticed and repaired.
   * @param check gets the sale before the change, and the calendar of its sku without this sale
   */
  begin(
    saleId: string,
    change: SaleChange,
    actor: string,
    check: (sale: Sale, calendar: readonly CalendarEntry[]) => 'wrong_state' | readonly FieldError[],
  ): Promise<EditBegun>;

  /**
   * Ends an edit that Redis has made: MySQL now lowers the stock by units to take. If MySQL has sold them in spite of
   * that, the edit becomes `refused`, and a new one gives the units back.
   * @returns how the edit ended, now or before; `moved`: the sale was rebuilt since, so take the units again
   */
  finish(edit: SaleEdit): Promise<EditState | 'moved'>;

  /** Ends an edit that Redis has refused for good, in this epoch. Returns like `finish`. */
  refuse(edit: SaleEdit): Promise<EditState | 'moved'>;

  /** Returns the edit for the current epoch of its sale. Null if it has ended. */
  takeUp(edit: SaleEdit): Promise<SaleEdit | null>;

  /** Returns edits that have not ended after `afterMs`, oldest first. */
  unfinished(afterMs: number, max: number): Promise<SaleEdit[]>;

  /** Deletes a draft. Returns the sale before the call, in whatever state, or null. */
  remove(saleId: string, actor: string): Promise<Sale | null>;
}

export interface BucketEdit extends SaleEdit {
  readonly closesAtMs: number;
  /** Whether to refuse the edit for good if too few units are left. */
  readonly isLast: boolean;
}

export const BUCKET_EDITED = ['unavailable', 'moved', 'refused', 'done', 'not_enough'] as const;

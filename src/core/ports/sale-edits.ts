import type { FieldError } from '../field-errors.js';
import type { Sale } from '../sale.js';
import type { CalendarEntry } from './sale-repository.js';

/** The fields of a sale to change. Absent fields stay as they are. */
export interface SaleChange {
  readonly title?: string;
  readonly priceCents?: number;
  readonly closesAtMs?: number;
  /** Total units offered from then on. */
  readonly stock?: number;
  /** Time to pay for orders that are recorded from then on. */
  readonly paymentWindowMs?: number;
  /** Terms of the coupons that are issued from then on. Null: none. */
  readonly coupon?: string | null;
}

/** A change of a loaded sale that Redis must follow: its units, the end of its window, or both. */
export interface SaleEdit {
  /** Decimal; grows within a sale. */
  readonly editId: string;
  readonly saleId: string;
  /** Units to add. Negative: units to take, and MySQL is lowered once Redis has given them. */
  readonly units: number;
  /** The epoch of the sale when MySQL was changed. For units to take: the epoch when Redis was last asked for them. */
  readonly epoch: number;
}

/** `begun` until Redis has followed. `refused`: too few units were free, and nothing was changed. */
export type EditState = 'begun' | 'done' | 'refused';

export type EditBegun =
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'wrong'; readonly errors: readonly FieldError[] }
  /** An earlier edit has not ended and must be finished first. */
  | { readonly outcome: 'busy'; readonly edit: SaleEdit }
  /** The change is made in MySQL, except for units to take. Without an edit Redis has nothing to follow. */
  | { readonly outcome: 'begun'; readonly sale: Sale; readonly edit: SaleEdit | null };

/** Changes of sales in MySQL. The audit entry is written with the change. */
export interface SaleEdits {
  /**
   * Makes the first part of a change, one sale at a time. A change of a draft that Redis would load begins a new epoch,
   * so that a load of the older data is found and repaired.
   * @param check gets the sale as it is, and the calendar of its sku without this sale
   * @throws OperationalError mysql
   */
  begin(
    saleId: string,
    change: SaleChange,
    actor: string,
    check: (sale: Sale, calendar: readonly CalendarEntry[]) => 'wrong_state' | readonly FieldError[],
  ): Promise<EditBegun>;

  /**
   * Finishes an edit that Redis has followed. For units to take, MySQL is lowered now. If MySQL has sold them all the
   * same, the edit is `refused`, and a new edit gives the units back.
   * @returns how the edit ended, now or before; `moved` when the sale was rebuilt since and the units must be taken
   *   again
   * @throws OperationalError mysql
   */
  finish(edit: SaleEdit): Promise<EditState | 'moved'>;

  /**
   * Ends an edit that Redis has refused for good, in this epoch.
   * @returns as `finish`
   * @throws OperationalError mysql
   */
  refuse(edit: SaleEdit): Promise<EditState | 'moved'>;

  /**
   * Returns the edit for the present epoch of its sale. Null when the edit has ended.
   * @throws OperationalError mysql
   */
  takeUp(edit: SaleEdit): Promise<SaleEdit | null>;

  /** Returns edits that have not ended after `afterMs`, oldest first. @throws OperationalError mysql */
  unfinished(afterMs: number, max: number): Promise<SaleEdit[]>;

  /**
   * Deletes a draft.
   * @returns the sale as it was, in any state; null: there is no such sale
   * @throws OperationalError mysql
   */
  remove(saleId: string, actor: string): Promise<Sale | null>;
}

export interface BucketEdit extends SaleEdit {
  readonly closesAtMs: number;
  /** Refuses the edit for good if too few units are left. */
  readonly isLast: boolean;
}

export const BUCKET_EDITED = ['unavailable', 'moved', 'refused', 'done', 'not_enough'] as const;

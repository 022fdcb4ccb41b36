import type { FieldError } from '../field-errors.js';
import type { Sale } from '../sale.js';
import type { CalendarEntry } from './sale-repository.js';

/** What is to change of a sale; what is absent stays. */
export interface SaleChange {
  readonly title?: string;
  readonly priceCents?: number;
  readonly closesAtMs?: number;
  /** Units offered in all, from then on. */
  readonly stock?: number;
}

/** A change of a loaded sale that Redis has to follow: its units, the end of its window, or both. */
export interface SaleEdit {
  /** In decimal; those of one sale grow. */
  readonly editId: string;
  readonly saleId: string;
  /** Units to add. Negative: to take; MySQL is lowered when Redis has given them. */
  readonly units: number;
  /** The sale was of this epoch when MySQL was changed; or, for units to take, when Redis was last asked for them. */
  readonly epoch: number;
}

/** `begun` until Redis has followed; `refused`: too few units were free, and nothing was changed. */
export type EditState = 'begun' | 'done' | 'refused';

export type EditBegun =
  | { readonly outcome: 'not_found' }
  | { readonly outcome: 'wrong_state'; readonly sale: Sale }
  | { readonly outcome: 'wrong'; readonly errors: readonly FieldError[] }
  /** An earlier edit has not ended; it has to be finished first. */
  | { readonly outcome: 'busy'; readonly edit: SaleEdit }
  /** Made in MySQL, but for units to take. Without an edit Redis has nothing to follow. */
  | { readonly outcome: 'begun'; readonly sale: Sale; readonly edit: SaleEdit | null };

/** Changes of sales, in MySQL. Each is audited with the change. */
export interface SaleEdits {
  /**
   * Makes the part of a change that comes first, one sale at a time. A draft that changes what Redis would load begins a new
   * epoch, so that a load of the older data is found and repaired.
   * @param check gets the sale as it is, and the calendar of its sku without it
   * @throws OperationalError mysql
   */
  begin(
    saleId: string,
    change: SaleChange,
    actor: string,
    check: (sale: Sale, calendar: readonly CalendarEntry[]) => 'wrong_state' | readonly FieldError[],
  ): Promise<EditBegun>;

  /**
   * Redis has followed. For units to take, MySQL is lowered now; should it have sold them all the same, the edit is
   * `refused`, and they are given back by an edit of their own.
   * @returns how the edit ended, now or before; `moved` when the sale was rebuilt since and the units have to be taken again
   * @throws OperationalError mysql
   */
  finish(edit: SaleEdit): Promise<EditState | 'moved'>;

  /** Redis has refused it for good, in this epoch. @returns as `finish`; @throws OperationalError mysql */
  refuse(edit: SaleEdit): Promise<EditState | 'moved'>;

  /** The edit as it belongs to the present epoch of its sale; null when it has ended. @throws OperationalError mysql */
  takeUp(edit: SaleEdit): Promise<SaleEdit | null>;

  /** Edits that have not ended after so long, the oldest first. @throws OperationalError mysql */
  unfinished(afterMs: number, max: number): Promise<SaleEdit[]>;

  /** Deletes a draft. @returns the sale as it was, whatever its state; null: there is none. @throws OperationalError mysql */
  remove(saleId: string, actor: string): Promise<Sale | null>;
}

export interface BucketEdit extends SaleEdit {
  readonly closesAtMs: number;
  /** Where too few units are left, the edit is refused for good. */
  readonly isLast: boolean;
}

export const BUCKET_EDITED = ['unavailable', 'moved', 'refused', 'done', 'not_enough'] as const;

import type { Sale, NewSale, SaleState, SeenSale } from '../sale.js';

export type CalendarEntry = Pick<Sale, 'saleId' | 'sku' | 'opensAtMs' | 'closesAtMs'>;

/** The actor of changes that no person requested. */
export const SYSTEM_ACTOR = 'system';

export interface SaleFilter {
  readonly states?: readonly SaleState[];
  readonly sku?: string;
  /** Sales that open at this time or later, Unix ms. */
  readonly opensFromMs?: number;
  /** Sales that open before this time, Unix ms. */
  readonly opensToMs?: number;
  /** Sales older than the sale with this id. */
  readonly beforeId?: string;
  /** If false, only sales that may still be in Redis. */
  readonly retired?: false;
  readonly max: number;
  readonly order?: 'newest' | 'closed_last';
}

/** MySQL owns the sales. Every change is audited in the same transaction. Methods throw OperationalError mysql. */
export interface SaleRepository {
  /** @param actor `system` if no person asked */
  create(sale: NewSale, actor?: string): Promise<Sale>;

  /**
   * Creates all of these sales or none. Such calls run one at a time.
   * @param check gets the sales of these skus that are not closed; if it returns anything, nothing is created
   * @returns the new sales in the given order, or the result of `check`
   */
  createAll<W>(
    sales: readonly NewSale[],
    actor: string,
    check: (calendar: readonly CalendarEntry[]) => readonly W[],
  ): Promise<{ readonly created: readonly Sale[] } | { readonly wrong: readonly W[] }>;

  /** Returns the sales of these skus that are not closed. */
  calendar(skus: readonly string[]): Promise<CalendarEntry[]>;

  find(saleId: string): Promise<Sale | null>;

  /** Returns the highest id of all sales, also drafts; `0` without sales. */
  newestId(): Promise<string>;

  /** Lists sales, newest first, or by the end of their window, latest first. */
  list(filter: SaleFilter): Promise<Sale[]>;

  /**
   * Moves a sale to `to` if its state allows that (SALE_TRANSITIONS). Audits only this.
   * @param actor `system` if no person asked
   * @param seen if the sale has changed since, the move is refused
   * @returns the sale after the call, or null. `unchanged`: it was in `to` before
   */
  move(
    saleId: string,
    to: SaleState,
    actor?: string,
    seen?: SeenSale,
  ): Promise<{ readonly sale: Sale; readonly outcome: 'moved' | 'unchanged' | 'refused' } | null>;
}

/** Finds due steps of scheduled sales (docs/decisions/0025) by MySQL's time. Methods throw OperationalError mysql. */
export interface SaleSchedule {
  /**
   * Returns sales that the keeper runs and whose next step is due, longest overdue first: drafts and warm sales after
   * their warm time, open and paused sales after their window. Omits drafts whose window is over.
   * @param behind last sale of the previous page, as it was read
   */
  due(max: number, behind?: Sale): Promise<Sale[]>;

  /** Returns closed sales of the keeper, `afterMs` after their window, never found equal in Redis and MySQL. */
  toCompare(afterMs: number, max: number): Promise<Sale[]>;

  /** Records, with an audit entry, that a closed sale was equal in Redis and MySQL. A repeat returns false. */
  compared(saleId: string, actor: string): Promise<boolean>;

  /** Makes the next comparison due in `afterMs`. */
  compareLater(saleId: string, afterMs: number): Promise<void>;

  /**
   * Returns sales that are not closed and open within this time or earlier, run by the keeper or by a person. Sales
   * whose window is over come first. If there are more than `max`, they are also dropped first. Each group is sorted by
   * opening.
   */
  coming(withinMs: number, max: number): Promise<Sale[]>;
}

/**
 * Retires sales that are long over and complete in MySQL. All programs first stop asking Redis for such a sale, and
 * Redis then forgets it. Methods throw OperationalError mysql.
 */
export interface RetirementRepository {
  /** Returns closed sales that are not retired, `afterMs` after their closing or window's end, earliest end first. */
  due(afterMs: number, max: number): Promise<Sale[]>;

  /** Retires a sale. False if not closed, already retired, or rebuilt since. After an error, it may be retired. */
  retire(sale: Pick<Sale, 'saleId' | 'epoch'>, actor: string): Promise<boolean>;

  /** Returns sales that were retired `afterMs` ago and that Redis may still have. */
  toForget(afterMs: number, max: number): Promise<Sale[]>;

  /** Records that Redis has forgotten the sale. */
  forgotten(saleId: string): Promise<void>;
}

/** `missing` means that the cache does not have the sale, `absent` that the sale does not exist. */
export type CachedSnapshot =
  | { readonly cached: 'ready'; readonly sale: Sale }
  | { readonly cached: 'absent' }
  | { readonly cached: 'missing' };

/** Snapshots for all apis, which look in memory, then here, then in MySQL. Methods throw OperationalError redis. */
export interface SaleSnapshotCache {
  read(saleId: string): Promise<CachedSnapshot>;

  /** Takes the right to load a snapshot from MySQL, for at most `holdMs`. False while another process has it. */
  lock(saleId: string, holdMs: number): Promise<boolean>;

  /** Stores a snapshot from MySQL (null: no such sale) and frees the lock. */
  write(saleId: string, sale: Sale | null): Promise<void>;

  /** Removes a snapshot after a change of its sale. */
  forget(saleId: string): Promise<void>;
}

import type { Sale, NewSale, SaleState, SeenSale } from '../sale.js';

/** The window of a sale that is not closed. */
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

/**
 * The sales in MySQL, which owns them. Every change writes a row to the audit log in the same transaction: actor,
 * action, and the sale before and after.
 */
export interface SaleRepository {
  /**
   * @param actor who requested the sale; `system` if no person did
   * @throws OperationalError mysql
   */
  create(sale: NewSale, actor?: string): Promise<Sale>;

  /**
   * Creates all of these sales or none. Calls of this kind run one at a time.
   * @param check gets the open, warm, paused and draft sales of the same skus; if it returns anything, nothing is
   * created
   * @returns the new sales in the given order, or the result of `check`
   * @throws OperationalError mysql
   */
  createAll<W>(
    sales: readonly NewSale[],
    actor: string,
    check: (calendar: readonly CalendarEntry[]) => readonly W[],
  ): Promise<{ readonly created: readonly Sale[] } | { readonly wrong: readonly W[] }>;

  /** Returns the sales of these skus that are not closed. @throws OperationalError mysql */
  calendar(skus: readonly string[]): Promise<CalendarEntry[]>;

  /** @throws OperationalError mysql */
  find(saleId: string): Promise<Sale | null>;

  /**
   * Returns the highest id of all sales, including drafts; `0` if there is no sale.
   * @throws OperationalError mysql
   */
  newestId(): Promise<string>;

  /**
   * Lists sales, newest first, or by the end of their window, latest end first.
   * @throws OperationalError mysql
   */
  list(filter: SaleFilter): Promise<Sale[]>;

  /**
   * Moves a sale to `to` if its state allows that (SALE_TRANSITIONS) or already is `to`. A repeated move is audited
   * too, because its caller sets the state in Redis again. A refused move is not audited.
   * @param actor who requested the move; `system` if no person did
   * @param seen if the sale has changed since it was seen like this, nothing is changed or audited
   * @returns the sale after the call, and whether it is in `to`; null if the sale does not exist
   * @throws OperationalError mysql
   */
  move(
    saleId: string,
    to: SaleState,
    actor?: string,
    seen?: SeenSale,
  ): Promise<{ readonly sale: Sale; readonly moved: boolean } | null>;
}

/** Finds the due steps of scheduled sales for the keeper (docs/decisions/0025). The time of MySQL decides. */
export interface SaleSchedule {
  /**
   * Returns sales that the keeper runs and whose next step is due, longest overdue first: drafts and warm sales after
   * their warm time, open and paused sales after the end of their window. Leaves out a draft whose window is over.
   * @param behind the last sale of the previous page, as it was read; absent for the first page
   * @throws OperationalError mysql
   */
  due(max: number, behind?: Sale): Promise<Sale[]>;

  /**
   * Returns closed sales run by the keeper whose window ended `afterMs` ago, and that no comparison has yet found equal
   * in Redis and MySQL.
   * @throws OperationalError mysql
   */
  toCompare(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Records, with an audit entry, that a closed sale was equal in Redis and MySQL. A repeat changes nothing.
   * @returns whether this call made the record
   * @throws OperationalError mysql
   */
  compared(saleId: string, actor: string): Promise<boolean>;

  /** Schedules the next comparison of the sale in `afterMs`. @throws OperationalError mysql */
  compareLater(saleId: string, afterMs: number): Promise<void>;

  /**
   * Returns sales that are not closed and that have opened, or will open within this time, no matter whether the keeper
   * or a person runs them. Sales whose window is over come first; each group is sorted by opening time. If there are
   * more than `max`, sales whose window is over are left out first.
   * @throws OperationalError mysql
   */
  coming(withinMs: number, max: number): Promise<Sale[]>;
}

/**
 * Retired sales: they are long over, and Redis has nothing of them that MySQL lacks. First all programs stop asking
 * Redis for such a sale, then Redis forgets it.
 */
export interface RetirementRepository {
  /**
   * Returns closed sales that are not retired and have been over for `afterMs`, earliest end first. A sale is over when
   * its window has ended, or when it was closed, whichever came first.
   * @throws OperationalError mysql
   */
  due(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Retires a closed sale, with a row in the audit log.
   * @returns false if the sale is not closed, is already retired, or has been rebuilt since it was read
   * @throws OperationalError mysql; the sale may be retired
   */
  retire(sale: Pick<Sale, 'saleId' | 'epoch'>, actor: string): Promise<boolean>;

  /**
   * Returns sales that were retired `afterMs` ago and that Redis may still have.
   * @throws OperationalError mysql
   */
  toForget(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Records that Redis has forgotten the sale.
   * @throws OperationalError mysql
   */
  forgotten(saleId: string): Promise<void>;
}

/** `missing` means that the cache does not have the sale, `absent` that the sale does not exist. */
export type CachedSnapshot =
  | { readonly cached: 'ready'; readonly sale: Sale }
  | { readonly cached: 'absent' }
  | { readonly cached: 'missing' };

/** Sale snapshots shared by all api processes. An api looks in its memory first, then in this cache, then in MySQL. */
export interface SaleSnapshotCache {
  /** @throws OperationalError redis */
  read(saleId: string): Promise<CachedSnapshot>;

  /**
   * Takes the right to load one snapshot from MySQL, for at most `holdMs`. Returns false while another process has it.
   * @throws OperationalError redis
   */
  lock(saleId: string, holdMs: number): Promise<boolean>;

  /**
   * Stores a snapshot from MySQL (null if there is no such sale) and frees the lock.
   * @throws OperationalError redis
   */
  write(saleId: string, sale: Sale | null): Promise<void>;

  /**
   * Removes a snapshot after a change of its sale.
   * @throws OperationalError redis
   */
  forget(saleId: string): Promise<void>;
}

import type { Sale, NewSale, SaleState, SeenSale } from '../sale.js';

/** The window of a sale that is not closed. */
export type CalendarEntry = Pick<Sale, 'saleId' | 'sku' | 'opensAtMs' | 'closesAtMs'>;

/** The actor of a change that no person asked for. */
export const SYSTEM_ACTOR = 'system';

export interface SaleFilter {
  readonly states?: readonly SaleState[];
  readonly sku?: string;
  /** That open at this time or later, Unix ms. */
  readonly opensFromMs?: number;
  /** That open before this time, Unix ms. */
  readonly opensToMs?: number;
  /** Older than this one. */
  readonly beforeId?: string;
  /** False: only those that may still be in Redis. */
  readonly retired?: false;
  readonly max: number;
  readonly order?: 'newest' | 'closed_last';
}

/**
 * The sales as their owner keeps them, in MySQL. Every change leaves a row in the audit log, in the same transaction:
 * who, what, the sale before and after.
 */
export interface SaleRepository {
  /**
   * @param actor who asked for it; `system` when no person did
   * @throws OperationalError mysql
   */
  create(sale: NewSale, actor?: string): Promise<Sale>;

  /**
   * Creates all of these sales or none of them, and no other call of this kind in between.
   * @param check gets the sales of the same skus that are not closed; what it returns is wrong, and nothing is created
   * @returns the new sales in their order, or what `check` found
   * @throws OperationalError mysql
   */
  createAll<W>(
    sales: readonly NewSale[],
    actor: string,
    check: (calendar: readonly CalendarEntry[]) => readonly W[],
  ): Promise<{ readonly created: readonly Sale[] } | { readonly wrong: readonly W[] }>;

  /** The sales of these skus that are not closed. @throws OperationalError mysql */
  calendar(skus: readonly string[]): Promise<CalendarEntry[]>;

  /** @throws OperationalError mysql */
  find(saleId: string): Promise<Sale | null>;

  /** No sale has a higher id, a draft included; `0` where there is no sale. @throws OperationalError mysql */
  newestId(): Promise<string>;

  /**
   * Sales, newest first; or, by the end of their window, those first that end last.
   * @throws OperationalError mysql
   */
  list(filter: SaleFilter): Promise<Sale[]>;

  /**
   * Moves a sale to `to` if it is in a state that may go there (SALE_TRANSITIONS), or is there already.
   * A repeat is audited too, since its caller sets the state in Redis once more; a refused move is not.
   * @param actor who asked for it; `system` when no person did
   * @param seen the sale is left as it is, and nothing is audited, unless it still is as it was seen
   * @returns the sale as it now is and whether it is in `to`; null when there is no such sale
   * @throws OperationalError mysql
   */
  move(
    saleId: string,
    to: SaleState,
    actor?: string,
    seen?: SeenSale,
  ): Promise<{ readonly sale: Sale; readonly moved: boolean } | null>;
}

/** What the keeper needs to run scheduled sales (docs/decisions/0025). MySQL's time decides what is due. */
export interface SaleSchedule {
  /**
   * Sales that the keeper runs and whose next step is due, those that wait longest first: drafts and warm sales from
   * their warm time on, open and paused ones from the end of their window on. A draft whose window is over is left out.
   * @param behind the last sale of the page before, as it was read; absent: the first page
   * @throws OperationalError mysql
   */
  due(max: number, behind?: Sale): Promise<Sale[]>;

  /**
   * Sales of the keeper that are closed, whose window ended `afterMs` ago and that were not found equal in Redis and MySQL.
   * @throws OperationalError mysql
   */
  toCompare(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Notes, with an audit entry, that a closed sale was equal in Redis and MySQL; a repeat changes nothing.
   * @returns whether this call noted it
   * @throws OperationalError mysql
   */
  compared(saleId: string, actor: string): Promise<boolean>;

  /** The sale is compared again after so long. @throws OperationalError mysql */
  compareLater(saleId: string, afterMs: number): Promise<void>;

  /**
   * Sales that are not closed and open within this time or have opened, whoever runs them. Those whose window is over
   * stand first, by the time they opened; the others follow likewise, and where `max` does not hold all, those that are over
   * are left out first.
   * @throws OperationalError mysql
   */
  coming(withinMs: number, max: number): Promise<Sale[]>;
}

/**
 * Retired sales: over for long, with nothing in Redis that MySQL does not have. First no program asks Redis for such a
 * sale any more, then Redis forgets it.
 */
export interface RetirementRepository {
  /**
   * Closed sales that are not retired and have been over for `afterMs`, those that ended first first. A sale is over
   * when its window has ended, or when it was closed, whichever came first.
   * @throws OperationalError mysql
   */
  due(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Retires a closed sale, with a row in the audit log.
   * @returns false when it is not closed, retired already, or was rebuilt since it was read
   * @throws OperationalError mysql; it may be retired
   */
  retire(sale: Pick<Sale, 'saleId' | 'epoch'>, actor: string): Promise<boolean>;

  /**
   * Sales that were retired `afterMs` ago, and that Redis is not known to have forgotten.
   * @throws OperationalError mysql
   */
  toForget(afterMs: number, max: number): Promise<Sale[]>;

  /**
   * Redis has forgotten the sale.
   * @throws OperationalError mysql
   */
  forgotten(saleId: string): Promise<void>;
}

/** `missing`: the cache does not have it; `absent`: there is no such sale. */
export type CachedSnapshot =
  | { readonly cached: 'ready'; readonly sale: Sale }
  | { readonly cached: 'absent' }
  | { readonly cached: 'missing' };

/** Sale snapshots shared by all api processes: memory → this → MySQL. */
export interface SaleSnapshotCache {
  /** @throws OperationalError redis */
  read(saleId: string): Promise<CachedSnapshot>;

  /**
   * The right to load one snapshot from MySQL, for at most `holdMs`; false while another process has it.
   * @throws OperationalError redis
   */
  lock(saleId: string, holdMs: number): Promise<boolean>;

  /**
   * Stores what was read from MySQL (null: no such sale) and frees the lock.
   * @throws OperationalError redis
   */
  write(saleId: string, sale: Sale | null): Promise<void>;

  /**
   * Removes a snapshot after its sale has changed.
   * @throws OperationalError redis
   */
  forget(saleId: string): Promise<void>;
}

import { LRUCache } from 'lru-cache';
import { OperationalError } from '../core/errors.js';
import type { Sale, SaleSnapshot } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';

export interface SaleSnapshotsPorts {
  readonly repository: SaleRepository;
  readonly cache: SaleSnapshotCache;
  readonly clock: Clock;
}

export interface SaleSnapshotsOptions {
  /** How long a snapshot is used without a check, ms. A change shows after this time, or later while MySQL is down. */
  readonly memoryTtlMs: number;
  /** Maximum number of snapshots in memory. Beyond it, the least recently used snapshot is dropped. */
  readonly memoryMax: number;
  /** Maximum number of remembered ids without a sale. Kept apart, so invented ids cannot push out sales. */
  readonly absentMax?: number;
  /** How long a process may load a snapshot before another may try, ms. */
  readonly lockMs: number;
}

/** How often, and how many times, a reader checks whether the holder of the lock has finished. */
const LOAD_POLL_MS = 20;
const LOAD_POLLS = 10;
/** How long a reader with an old snapshot waits for a new one. */
const PATIENCE_MS = 100;
const ABSENT_MAX = 10_000;
/** Minimum interval between two queries for the newest sale. */
const NEWEST_EVERY_MS = 20;

/**
 * Reads sale snapshots from memory, the shared cache or MySQL, in this order. No matter how many buyers ask, only one
 * process reads MySQL, and each process has one call per sale under way. Sale ids increase, so ids above the newest
 * share one query. `SoldOutFlags` knows what is sold out.
 */
export class SaleSnapshots {
  readonly #ports: SaleSnapshotsPorts;
  readonly #options: SaleSnapshotsOptions;
  readonly #memory: LRUCache<string, KnownSnapshot>;
  readonly #absent: LRUCache<string, true>;
  readonly #underWay = new Map<string, Promise<SaleSnapshot>>();
  /** Calls that replace an old snapshot, by sale. Waiting requests share them. */
  readonly #refreshes = new Map<string, Promise<SaleSnapshot>>();
  /** The newest known id. There may be newer sales. */
  #newestId = '0';
  /** The next query, which has not been sent yet. */
  #nextNewest: Promise<void> | null = null;
  #lastNewest: Promise<void> = Promise.resolve();
  #newestAskedMs = -Infinity;

  constructor(ports: SaleSnapshotsPorts, options: SaleSnapshotsOptions) {
    this.#ports = ports;
    this.#options = options;
    const terms = {
      ttl: options.memoryTtlMs,
      ttlResolution: 0, // otherwise the cache keeps our clock for a millisecond of real time
      perf: { now: () => ports.clock.monotonicMs() },
    };
    this.#memory = new LRUCache({ ...terms, max: options.memoryMax, noDeleteOnStaleGet: true });
    this.#absent = new LRUCache({ ...terms, max: options.absentMax ?? ABSENT_MAX });
  }

  /** Returns the snapshot of a sale from memory, without an await. */
  peek(saleId: string): SaleSnapshot | undefined {
    return this.#memory.get(saleId);
  }

  /** Drops an outdated snapshot. Never throws. */
  async forget(saleId: string): Promise<void> {
    this.#memory.delete(saleId);
    this.#absent.delete(saleId);
    try {
      await this.#ports.cache.forget(saleId);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error; // otherwise the snapshot is used until it expires
    }
  }

  /** @throws OperationalError redis or mysql */
  get(saleId: string): SaleSnapshot | Promise<SaleSnapshot> {
    const snapshot = this.peek(saleId);
    if (snapshot) return snapshot;
    const known = this.#memory.get(saleId, { allowStale: true });
    if (known) return this.#refresh(known, saleId);
    if (this.#absent.has(saleId)) return NOT_FOUND;
    return isAfter(saleId, this.#newestId) ? this.#loadIfExists(saleId) : this.#load(saleId);
  }

  /** Loads a sale unless its id is above the newest. If MySQL does not answer, the shared cache may have the sale. */
  async #loadIfExists(saleId: string): Promise<SaleSnapshot> {
    try {
      await (this.#nextNewest ??= this.#askNewest());
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return this.#load(saleId);
    }
    return isAfter(saleId, this.#newestId) ? NOT_FOUND : this.#load(saleId);
  }

  /** Queries the newest sale, one query at a time. A request during a query waits for the next query. */
  async #askNewest(): Promise<void> {
    const { clock, repository } = this.#ports;
    await this.#lastNewest;
    const restMs = this.#newestAskedMs + NEWEST_EVERY_MS - clock.monotonicMs();
    if (restMs > 0) await clock.sleep(restMs);
    this.#nextNewest = null;
    this.#newestAskedMs = clock.monotonicMs();
    const asked = repository.newestId().then((newestId) => void (this.#newestId = newestId));
    this.#lastNewest = asked.catch(() => undefined); // the caller gets the error
    await asked;
  }

  /** All requests share one wait, because in a rush hundreds arrive while a snapshot is being read. */
  #refresh(known: KnownSnapshot, saleId: string): Promise<SaleSnapshot> {
    const underWay = this.#refreshes.get(saleId);
    if (underWay) return underWay;
    const refresh = this.#freshOr(known, saleId).finally(() => this.#refreshes.delete(saleId));
    this.#refreshes.set(saleId, refresh);
    return refresh;
  }

  /**
   * Returns the known snapshot if MySQL is down or slow. An old snapshot is better than no answer: a warmed sale
   * changes only when it is resharded, which Redis notices, and Redis decides whether it is open.
   */
  async #freshOr(known: KnownSnapshot, saleId: string): Promise<SaleSnapshot> {
    const waiting = new AbortController();
    const late = this.#ports.clock.sleep(PATIENCE_MS, waiting.signal).then(() => known);
    const loaded = this.#load(saleId).catch((error: unknown) => {
      if (error instanceof OperationalError) return known;
      throw error;
    });
    const snapshot = await Promise.race([loaded, late]).finally(() => waiting.abort());
    return snapshot === known || snapshot.snapshot === 'loading' ? this.#keep(saleId, known.sale) : snapshot;
  }

  #load(saleId: string): Promise<SaleSnapshot> {
    const underWay = this.#underWay.get(saleId);
    if (underWay) return underWay;
    const load = this.#throughCache(saleId).finally(() => this.#underWay.delete(saleId));
    this.#underWay.set(saleId, load);
    return load;
  }

  async #throughCache(saleId: string): Promise<SaleSnapshot> {
    const { cache, clock } = this.#ports;
    for (let poll = 0; poll < LOAD_POLLS; poll++) {
      const cached = await cache.read(saleId);
      if (cached.cached !== 'missing') return this.#keep(saleId, cached.cached === 'ready' ? cached.sale : null);
      if (await cache.lock(saleId, this.#options.lockMs)) return this.#fromRepository(saleId);
      await clock.sleep(LOAD_POLL_MS);
    }
    return { snapshot: 'loading' }; // not cached, so the next buyer reads again
  }

  async #fromRepository(saleId: string): Promise<SaleSnapshot> {
    const sale = await this.#ports.repository.find(saleId);
    await this.#ports.cache.write(saleId, sale);
    return this.#keep(saleId, sale);
  }

  #keep(saleId: string, sale: Sale | null): SaleSnapshot {
    if (sale === null || (sale.state === 'draft' && sale.warmBeforeMs === null)) {
      this.#memory.delete(saleId);
      this.#absent.set(saleId, true);
      return NOT_FOUND;
    }
    const snapshot: KnownSnapshot = { snapshot: sale.state === 'draft' ? 'announced' : 'ready', sale };
    this.#memory.set(saleId, snapshot);
    return snapshot;
  }
}

type KnownSnapshot = Extract<SaleSnapshot, { readonly sale: Sale }>;

const NOT_FOUND: SaleSnapshot = { snapshot: 'not_found' };

/** Whether the first id is higher. Both are whole numbers without leading zeros. */
const isAfter = (one: string, other: string): boolean =>
  one.length === other.length ? one > other : one.length > other.length;

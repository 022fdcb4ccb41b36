import { LRUCache } from 'lru-cache';
import { OperationalError } from '../core/errors.js';
import type { Sale, SaleSnapshot } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';

export interface SaleSnapshotsPorts {
  readonly repository: Pick<SaleRepository, 'find' | 'newestId'>;
  readonly cache: SaleSnapshotCache;
  readonly clock: Clock;
}

export interface SaleSnapshotsOptions {
  /** How long a snapshot is used without asking; a change is seen this late, or later while MySQL is out. */
  readonly memoryTtlMs: number;
  /** Snapshots kept in memory; beyond it the least used one goes. */
  readonly memoryMax: number;
  /** Ids without a sale that are remembered, apart from the sales, so that nobody can push those out. */
  readonly absentMax?: number;
  /** How long one process may take to load a snapshot before another may try. */
  readonly lockMs: number;
}

/** How often, and how many times, a reader checks whether the holder of the lock has finished. */
const LOAD_POLL_MS = 20;
const LOAD_POLLS = 10;
/** How long a reader with an old snapshot waits for a new one. */
const PATIENCE_MS = 100;
const ABSENT_MAX = 10_000;
/** MySQL is asked for the newest sale no more often than this, however many ids are invented. */
const NEWEST_EVERY_MS = 20;

/**
 * Sale snapshots through three layers: memory, the shared cache, MySQL. Whether a sale is sold out is a flag of
 * `SoldOutFlags`. However many buyers ask at once, one process reads MySQL, and in each process one call is under way per
 * sale. Sales are numbered upwards, so an id above the newest one needs no look-up of its own: all who ask for such ids
 * share one query.
 */
export class SaleSnapshots {
  readonly #ports: SaleSnapshotsPorts;
  readonly #options: SaleSnapshotsOptions;
  readonly #memory: LRUCache<string, SaleSnapshot & { readonly snapshot: 'ready' }>;
  readonly #absent: LRUCache<string, true>;
  readonly #underWay = new Map<string, Promise<SaleSnapshot>>();
  /** What all who ask for a sale wait for while its old snapshot is read anew. */
  readonly #refreshes = new Map<string, Promise<SaleSnapshot>>();
  /** There was a sale with this id; there may be newer ones. */
  #newestId = '0';
  /** The query that was not sent yet. */
  #nextNewest: Promise<void> | null = null;
  #lastNewest: Promise<void> = Promise.resolve();
  #newestAskedMs = -Infinity;

  constructor(ports: SaleSnapshotsPorts, options: SaleSnapshotsOptions) {
    this.#ports = ports;
    this.#options = options;
    const terms = {
      ttl: options.memoryTtlMs,
      ttlResolution: 0, // else the cache remembers our clock for a millisecond of the real one
      perf: { now: () => ports.clock.monotonicMs() },
    };
    this.#memory = new LRUCache({ ...terms, max: options.memoryMax, noDeleteOnStaleGet: true });
    this.#absent = new LRUCache({ ...terms, max: options.absentMax ?? ABSENT_MAX });
  }

  /** The snapshot of a sale if memory has it; costs no await. */
  peek(saleId: string): SaleSnapshot | undefined {
    return this.#memory.get(saleId);
  }

  /** The snapshot is out of date: the next request reads MySQL again. Never throws. */
  async forget(saleId: string): Promise<void> {
    this.#memory.delete(saleId);
    this.#absent.delete(saleId);
    try {
      await this.#ports.cache.forget(saleId);
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error; // else it is believed until its life ends
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

  /** A MySQL that does not answer is no reason not to look into the shared cache. */
  async #loadIfExists(saleId: string): Promise<SaleSnapshot> {
    try {
      await (this.#nextNewest ??= this.#askNewest());
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      return this.#load(saleId);
    }
    return isAfter(saleId, this.#newestId) ? NOT_FOUND : this.#load(saleId);
  }

  /** One query after the other. Who asks while one is under way waits for the next, which sees what was there before. */
  async #askNewest(): Promise<void> {
    const { clock, repository } = this.#ports;
    await this.#lastNewest;
    const restMs = this.#newestAskedMs + NEWEST_EVERY_MS - clock.monotonicMs();
    if (restMs > 0) await clock.sleep(restMs);
    this.#nextNewest = null;
    this.#newestAskedMs = clock.monotonicMs();
    const asked = repository.newestId().then((newestId) => void (this.#newestId = newestId));
    this.#lastNewest = asked.catch(() => undefined); // who asked hears of it
    await asked;
  }

  /** One wait for all: in a rush hundreds come while a snapshot is read. */
  #refresh(known: SaleSnapshot & { snapshot: 'ready' }, saleId: string): Promise<SaleSnapshot> {
    const underWay = this.#refreshes.get(saleId);
    if (underWay) return underWay;
    const refresh = this.#freshOr(known, saleId).finally(() => this.#refreshes.delete(saleId));
    this.#refreshes.set(saleId, refresh);
    return refresh;
  }

  /**
   * A snapshot that was good a second ago is better than none: what it says of a warmed sale changes only when
   * that is resharded, which Redis notices, and whether the sale is open Redis says anyway. So buyers do not wait for a
   * MySQL that is out or slow.
   */
  async #freshOr(known: SaleSnapshot & { snapshot: 'ready' }, saleId: string): Promise<SaleSnapshot> {
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
    return { snapshot: 'loading' }; // not cached: the next buyer reads again
  }

  async #fromRepository(saleId: string): Promise<SaleSnapshot> {
    const sale = await this.#ports.repository.find(saleId);
    await this.#ports.cache.write(saleId, sale);
    return this.#keep(saleId, sale);
  }

  #keep(saleId: string, sale: Sale | null): SaleSnapshot {
    if (sale === null || sale.state === 'draft') {
      this.#memory.delete(saleId);
      this.#absent.set(saleId, true);
      return NOT_FOUND;
    }
    const snapshot = { snapshot: 'ready', sale } as const;
    this.#memory.set(saleId, snapshot);
    return snapshot;
  }
}

const NOT_FOUND: SaleSnapshot = { snapshot: 'not_found' };

/** Whether one id is higher than the other; both are whole numbers without leading zeros. */
const isAfter = (one: string, other: string): boolean =>
  one.length === other.length ? one > other : one.length > other.length;

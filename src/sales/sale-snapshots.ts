import { LRUCache } from 'lru-cache';
import { OperationalError } from '../core/errors.js';
import type { Sale, SaleSnapshot } from '../core/sale.js';
import type { Clock } from '../core/ports/clock.js';
import type { SaleRepository, SaleSnapshotCache } from '../core/ports/sale-repository.js';

export interface SaleSnapshotsPorts {
  readonly repository: Pick<SaleRepository, 'find'>;
  readonly cache: SaleSnapshotCache;
  readonly clock: Clock;
}

export interface SaleSnapshotsOptions {
  /** How long a snapshot is used without asking; a change is seen this late, or later while MySQL is out. */
  readonly memoryTtlMs: number;
  /** Snapshots kept in memory; beyond it the least used one goes. */
  readonly memoryMax: number;
  /** How long one process may take to load a snapshot before another may try. */
  readonly lockMs: number;
}

/** How often, and how many times, a reader checks whether the holder of the lock has finished. */
const LOAD_POLL_MS = 20;
const LOAD_POLLS = 10;
/** How long a reader with an old snapshot waits for a new one. */
const PATIENCE_MS = 100;

/**
 * Sale snapshots through three layers: memory, the shared cache, MySQL (`ready`, `not_found`, `loading`; the fourth
 * word, SOLD_OUT, is the local flag). However many buyers ask at once, one process reads MySQL, and in each process
 * one call is under way per sale.
 */
export class SaleSnapshots {
  readonly #ports: SaleSnapshotsPorts;
  readonly #options: SaleSnapshotsOptions;
  readonly #memory: LRUCache<string, SaleSnapshot>;
  readonly #underWay = new Map<string, Promise<SaleSnapshot>>();

  constructor(ports: SaleSnapshotsPorts, options: SaleSnapshotsOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#memory = new LRUCache({
      max: options.memoryMax,
      ttl: options.memoryTtlMs,
      noDeleteOnStaleGet: true,
      ttlResolution: 0, // else the cache remembers our clock for a millisecond of the real one
      perf: { now: () => ports.clock.monotonicMs() },
    });
  }

  /** The snapshot if memory has it; costs no await. */
  peek(saleId: string): SaleSnapshot | undefined {
    return this.#memory.get(saleId);
  }

  /** The snapshot is out of date: the next request reads MySQL again. Never throws. */
  async forget(saleId: string): Promise<void> {
    this.#memory.delete(saleId);
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
    return known?.snapshot === 'ready' ? this.#freshOr(known, saleId) : this.#load(saleId);
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
    const snapshot: SaleSnapshot =
      sale === null || sale.state === 'draft' ? { snapshot: 'not_found' } : { snapshot: 'ready', sale };
    this.#memory.set(saleId, snapshot);
    return snapshot;
  }
}

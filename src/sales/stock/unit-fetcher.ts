import type { HomeBucket } from '../../core/ports/stock-store.js';
import type { TransferStore } from '../../core/ports/transfer-store.js';
import { gatherUnits, type Gathered, type WantedUnits } from './gather-units.js';
import { countUnitsLeft, type SaleBuckets } from './look-at-sale.js';

/** Fetches units for the buckets of this process, one fetch per bucket at a time. */
export class UnitFetcher {
  readonly #store: TransferStore;
  readonly #underWay = new Map<string, Promise<Gathered>>();

  constructor(store: TransferStore) {
    this.#store = store;
  }

  /**
   * Whoever comes while a fetch is under way waits for it, and tries again when it has brought something. That there is
   * nothing he believes only of a fetch that began after he came.
   * @throws OperationalError redis
   */
  async fetch(home: HomeBucket, wanted: WantedUnits): Promise<Gathered> {
    const name = `${home.saleId}:${home.bucket}/${home.buckets}`;
    const earlier = this.#underWay.get(name);
    if (earlier !== undefined) {
      const gathered = await earlier.catch(() => null); // whoever began it hears why
      if (gathered?.outcome === 'gathered') return gathered;
    }
    let fetch = this.#underWay.get(name);
    if (fetch === undefined) {
      fetch = gatherUnits(home, wanted, this.#store).finally(() => this.#underWay.delete(name));
      this.#underWay.set(name, fetch);
    }
    return fetch;
  }

  /** Units left in all buckets; null when that cannot be said now. @throws OperationalError redis */
  async count(sale: SaleBuckets): Promise<number | null> {
    const counted = await countUnitsLeft(sale, this.#store);
    return typeof counted === 'string' ? null : counted;
  }
}

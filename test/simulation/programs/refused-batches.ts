import { purchaseKey, type Purchase } from '../../../src/core/purchase.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import type { Deliver } from '../../../src/purchase/place-batch.js';

/** Checks that an api never sends a batch again unchanged after a script has failed with it. */
export class RefusedBatches {
  readonly #fail: (what: string) => void;
  /** Keys of failed batches whose purchases have not been separated yet. */
  readonly #refused = new Set<ReadonlySet<string>>();

  constructor(fail: (what: string) => void) {
    this.#fail = fail;
  }

  watched<S extends Pick<StockStore, 'precheck' | 'deduct'>>(store: S): S {
    return {
      ...store,
      precheck: (ref, purchases) => {
        this.#goes(purchases);
        return store.precheck(ref, purchases);
      },
      deduct: async (batch) => {
        const verdict = await store.deduct(batch);
        if (verdict.outcome === 'errored') this.#refused.add(new Set(batch.purchases.map(purchaseKey)));
        return verdict;
      },
    };
  }

  delivered(purchase: Purchase | undefined, { outcome }: Parameters<Deliver>[1]): void {
    if (purchase === undefined || this.#refused.size === 0) return;
    const key = purchaseKey(purchase);
    for (const keys of this.#refused) {
      if (!keys.has(key)) continue;
      if (outcome === 'again')
        this.#fail(`${key} goes again as it was, with those that Redis refuses together with it`);
      this.#refused.delete(keys);
    }
  }

  #goes(purchases: readonly Purchase[]): void {
    if (this.#refused.size === 0) return;
    const going = new Set(purchases.map(purchaseKey));
    for (const keys of this.#refused) {
      const again = [...keys].filter((key) => going.has(key));
      if (again.length === keys.size) this.#fail(`${again.join(' ')} go again unchanged, and Redis refuses them`);
      if (again.length > 0) this.#refused.delete(keys);
    }
  }
}

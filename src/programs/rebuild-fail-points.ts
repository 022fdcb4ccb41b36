import type { RepairRepository, RepairStore } from '../core/ports/repair-stores.js';

/** Places between two steps of a rebuild: of a repair by the keeper, or of a scatter that an api was asked for. */
export const REBUILD_FAIL_POINTS = ['repair_after_lock', 'repair_after_epoch', 'repair_after_stock'] as const;

type Pass = (point: (typeof REBUILD_FAIL_POINTS)[number]) => Promise<void>;

/** Around what rebuilds a sale: in Redis, and in MySQL. */
export interface RebuildFailPoints {
  rebuilt<L extends RepairStore>(store: L): L;
  raised<B extends RepairRepository>(repository: B): B;
}

const same = <T>(part: T): T => part;
export const NO_REBUILD_POINTS: RebuildFailPoints = { rebuilt: same, raised: same };

export const rebuildFailPoints = (pass: Pass): RebuildFailPoints => ({
  rebuilt: (store) => ({
    ...store,
    async lock(...shut) {
      const word = await store.lock(...shut);
      await pass('repair_after_lock');
      return word;
    },
    async swap(...reopen) {
      await pass('repair_after_stock'); // all of it is staged
      return store.swap(...reopen);
    },
  }),
  raised: (repository) => ({
    ...repository,
    async raiseEpoch(...raise) {
      const raised = await repository.raiseEpoch(...raise);
      await pass('repair_after_epoch');
      return raised;
    },
  }),
});

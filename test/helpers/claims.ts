import type { BatchStore } from '../../src/core/ports/batch-store.js';

/** A ledger in which every late batch finds its units, for tests of the book alone. */
export const grantingStore: Pick<BatchStore, 'reacquire'> = {
  reacquire: async () => ({ outcome: 'claimed', lost: new Set(), elsewhere: new Set() }),
};

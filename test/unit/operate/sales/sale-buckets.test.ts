import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { BucketStatus } from '../../../../src/core/ports/repair-stores.js';
import type { StoredSale } from '../../../../src/core/ports/stock-store.js';
import { readSaleBuckets } from '../../../../src/operate/sales/sale-buckets.js';
import { partial } from '../../../helpers/partial.js';

const fault = new OperationalError('redis', 'no answer', { retryable: true });
const status = (parts: Partial<BucketStatus> = {}): BucketStatus => ({
  state: 'open',
  epoch: 2,
  sameServer: true,
  ...parts,
});

describe('sale buckets', () => {
  it('show state, units and pending batches, or why a bucket could not be read', async () => {
    const statuses = [status(), status({ sameServer: false }), status({ state: null, epoch: 0 }), fault, status()];
    const buckets = await readSaleBuckets(
      { saleId: '7', buckets: 5 },
      {
        repair: partial({ statusOrFault: async (refs) => refs.map(({ bucket }) => statuses[bucket] as BucketStatus) }),
        stock: partial({
          readSale: async ({ bucket }) => {
            if (bucket === 4) throw fault;
            return bucket < 2 ? ({ unitsLeft: 10 + bucket } as StoredSale) : null;
          },
        }),
        batches: partial({ pendingSummary: async ({ bucket }) => ({ batches: bucket === 0 ? 3 : 0, oldestMs: 40 }) }),
      },
    );
    const away = { state: null, epoch: null, sameServer: null, unitsLeft: null, pending: null, pendingOldestMs: null };
    const idle = { pending: 0, pendingOldestMs: null, error: null };
    expect(buckets).to.deep.equal([
      {
        bucket: 0,
        state: 'open',
        epoch: 2,
        sameServer: true,
        unitsLeft: 10,
        pending: 3,
        pendingOldestMs: 40,
        error: null,
      },
      { bucket: 1, state: 'open', epoch: 2, sameServer: false, unitsLeft: 11, ...idle },
      { bucket: 2, state: null, epoch: null, sameServer: null, unitsLeft: null, ...idle },
      { bucket: 3, ...away, error: 'no answer' },
      { bucket: 4, ...away, error: 'no answer' },
    ]);
  });
});

import { expect } from 'chai';
import type { BucketStatus } from '../../../src/core/ports/repair-stores.js';
import { repairNeedOf } from '../../../src/core/sale-repair.js';

const GONE: BucketStatus = { state: null, epoch: 0, sameServer: false };

describe('reason for a repair', () => {
  const good: BucketStatus = { state: 'open', epoch: 3, sameServer: true };
  const needOf = (...buckets: Partial<BucketStatus>[]): string | null =>
    repairNeedOf(
      { state: 'open', epoch: 3, retiredAtMs: null },
      buckets.map((bucket) => ({ ...good, ...bucket })),
    );

  it('is null while every bucket is loaded on this server in this epoch', () => {
    expect(needOf({}, {})).to.equal(null);
    expect(needOf({ state: 'paused' }, { state: 'closed', epoch: 4 })).to.equal(null);
  });

  it('is reported for a single bucket, unless a repair already runs [R5, R2]', () => {
    expect(needOf({}, { state: null, epoch: 0, sameServer: false })).to.equal('not_loaded');
    expect(needOf({}, { sameServer: false })).to.equal('other_server');
    expect(needOf({}, { epoch: 2 })).to.equal('old_epoch');
    expect(needOf({ sameServer: false }, { state: 'repair' }, { state: null })).to.equal('in_repair');
  });

  it('is null for a draft that was never loaded or is loading', () => {
    expect(repairNeedOf({ state: 'draft', epoch: 1, retiredAtMs: null }, [GONE])).to.equal(null);
  });

  it('is null for a retired sale, which was removed from Redis on purpose', () => {
    expect(repairNeedOf({ state: 'closed', epoch: 1, retiredAtMs: 1 }, [GONE])).to.equal(null);
  });
});

import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { SaleTerms } from '../../../src/core/ports/order-repository.js';
import type { WrittenRow, ShadowStore } from '../../../src/core/ports/shadow.js';
import { compareRows, Shadow } from '../../../src/orders/shadow.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { partial } from '../../helpers/partial.js';
import { batchOf, orderOf, purchasesOf } from '../../helpers/sales.js';
import { silentLog } from '../../helpers/silent-log.js';

const SALE = { saleId: '7' };

describe('a shadow of the workers', () => {
  let parked: boolean;
  let rows: WrittenRow[];
  let noted: string[];
  let clock: ManualClock;
  let isUnavailable: boolean;
  let price: () => number;
  beforeEach(() => {
    [parked, rows, noted, clock, isUnavailable] = [false, [], [], new ManualClock(1000), false];
    price = () => 100;
  });

  const shadowOf = (): Shadow => {
    const store: ShadowStore = {
      rowsOf: async () => {
        if (isUnavailable) throw new OperationalError('mysql', 'gone', { retryable: true });
        return rows;
      },
      isParked: async () => parked,
      termsOf: async () => new Map([['7', partial<SaleTerms>({ epoch: 1, priceCents: price() })]]),
      replay: async () => ({ repository: partial({ termsOf: async () => new Map() }), planned: [] }),
    };
    return new Shadow(
      {
        ...{ source: partial({}), store, wrap: (repository) => repository, log: silentLog, clock },
        metrics: {
          compared: (purchases) => void noted.push(`${purchases} compared`),
          differed: (field) => void noted.push(field),
          skipped: (reason) => void noted.push(`skipped ${reason}`),
        },
      },
      { loops: 1, receiveMax: 1, paymentWindowMs: 1 },
    );
  };
  const compareWith = (shadow: Shadow, body: string): Promise<void> =>
    shadow.compare(partial({ messageId: 'm', body }), new AbortController().signal);
  const compare = async (body: string): Promise<string[]> => {
    await compareWith(shadowOf(), body);
    return noted;
  };

  it('notes a message that this build cannot read, unless the workers parked it too', async () => {
    expect(await compare('{"v":9}')).to.deep.equal(['body']);
    parked = true;
    noted = [];
    expect(await compare('{"v":9}')).to.deep.equal(['skipped parked']);
  });

  it('counts a batch without all its rows as late after a minute, unless it was parked', async () => {
    const { body } = batchOf(SALE, purchasesOf('ann', 'bob'));
    parked = true;
    expect(await compare(body)).to.deep.equal(['skipped parked']);
    expect(clock.nowMs()).to.be.within(61_000, 61_200);
    [parked, noted] = [false, []];
    const shadow = shadowOf();
    await compareWith(shadow, body);
    expect(noted).to.deep.equal(['skipped late']);
    expect(shadow.result).to.deep.include({ differences: 0, skippedBatches: 1, lateBatches: 1, isSame: false });
  });

  it('skips a batch whose sale was edited while it was compared', async () => {
    const batch = batchOf(SALE, purchasesOf('ann'));
    rows = [{ ...orderOf({ saleId: '7', userId: 'ann', batchId: 'other' }), metadata: null }];
    let cents = 100;
    price = () => cents++;
    expect(await compare(batch.body)).to.deep.equal(['skipped edited']);
  });

  it('vouches for a build only if it has compared nearly all batches', async () => {
    const shadow = shadowOf();
    const batch = batchOf(SALE, purchasesOf('ann'));
    rows = [{ ...orderOf({ saleId: '7', userId: 'ann', batchId: 'other' }), metadata: null }];
    expect(shadow.result.isSame, 'nothing was compared').to.equal(false);
    for (let count = 1; count <= 19; count++) await compareWith(shadow, batch.body);
    isUnavailable = true;
    await compareWith(shadow, batch.body);
    const counts = { purchases: 19, differences: 0, skippedBatches: 1, lateBatches: 0 };
    expect(shadow.result).to.deep.equal({ ...counts, isSame: true });
    await compareWith(shadow, batch.body);
    expect(shadow.result.isSame, '2 of 21 batches').to.equal(false);
  });

  it('skips a batch that is older than the shadow', async () => {
    const batch = { ...batchOf(SALE, purchasesOf('ann')), createdAtMs: 999 };
    expect(await compare(batch.body.replace(/"createdAt":\d+/, '"createdAt":999'))).to.deep.equal(['skipped earlier']);
  });

  it('expects no plan for a row of another batch, and no row of this batch without a plan', () => {
    const batch = batchOf(SALE, purchasesOf('ann'));
    const row = { ...orderOf({ saleId: '7', userId: 'ann', batchId: 'other' }), metadata: null };
    expect(compareRows(batch, [], [row])).to.deep.equal([]);
    const own = { ...row, batchId: batch.batchId };
    expect(compareRows(batch, [], [own])).to.deep.equal([
      { field: 'row', requestId: 'k1', planned: 'none', written: 'a row' },
    ]);
  });
});

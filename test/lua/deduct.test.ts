import { expect } from 'chai';
import { newBatchId, BATCH_SIZE_CEILING } from '../../src/core/batch.js';
import { ABORTED_LIFE_MS, ScriptRunner } from './script-runner.js';
import { batchOf, purchaseOf, purchasesOf } from '../helpers/sales.js';
import {
  BATCH_EPOCH,
  PURCHASE_CONDITIONS,
  saleIn,
  clashesOf,
  describeSetting,
  uncoveredPairs,
  type Condition,
  type Setting,
} from './precedence.js';

/** Conditions in the order of the header, then of precheck. The batch is always `u1/k1*1` of `BATCH_EPOCH`. */
const CONDITIONS: readonly Condition[] = [
  { word: 'already_deducted', setting: { marker: 'deducted' } },
  { word: 'already_deducted', setting: { marker: 'deducted{"v":1}' } },
  { word: 'aborted', setting: { marker: 'aborted' } },
  { word: 'claimed', setting: { marker: 'claimed' } },
  { word: 'not_warmed', setting: { state: 'missing' } },
  { word: 'stale_epoch', setting: { state: 'repair' } },
  { word: 'stale_epoch', setting: { server: 'another' } },
  { word: 'stale_epoch', setting: { epoch: 'earlier' } },
  { word: 'stale_epoch', setting: { epoch: 'later' } },
  ...PURCHASE_CONDITIONS,
];

/** Words that the reply contains for each purchase, after `refused`. */
const REFUSALS = PURCHASE_CONDITIONS.map(({ word }) => word);

describe('lua/deduct-6.lua', () => {
  const runner = ScriptRunner.inSuite();

  const expectWord = async (word: string, setting: Setting): Promise<void> => {
    const batchId = newBatchId();
    const sale = await saleIn(setting, runner, batchId);
    const before = await sale.snapshot([batchId]);
    const reply = await sale.deduct(batchOf({ ...sale.sale, epoch: BATCH_EPOCH }, purchasesOf('u1/k1'), batchId));
    const entry = setting.entry === undefined ? '' : `held:earlier-batch:${setting.entry}`;
    expect(reply).to.deep.equal(REFUSALS.includes(word) ? ['refused', 0, word, entry] : [word]);
    const markers = REFUSALS.includes(word) ? { [batchId]: 'aborted' } : before.markers;
    expect(await sale.snapshot([batchId]), 'nothing was taken').to.deep.equal({ ...before, markers });
  };

  describe('words with a single reason, which take nothing', () => {
    for (const { word, setting } of CONDITIONS) {
      it(`returns ${word}: ${describeSetting(setting)}`, () => expectWord(word, setting));
    }
  });

  describe('words with two reasons', () => {
    for (const { first, second, both } of clashesOf(CONDITIONS)) {
      it(`returns ${first.word} before ${second.word}: ${describeSetting(both)}`, () => expectWord(first.word, both));
    }

    it('covers every pair of reasons that can hold at once', () => {
      expect(uncoveredPairs(CONDITIONS)).to.deep.equal([
        'already_deducted > aborted',
        'already_deducted > claimed',
        'aborted > claimed',
        'not_warmed > paused',
        'replayed > request_conflict',
      ]);
    });
  });

  it('takes every unit of the batch and writes the marker, the entries and pending', async () => {
    const sale = await runner.sale({ stock: 5, limitPerBuyer: 3 });
    const batch = batchOf(sale.sale, purchasesOf('u1/a*2', 'u2/a', 'u1/b'));
    const before = await runner.nowMs();
    const [word, left, atMs] = (await sale.deduct(batch)) as [string, number, number];
    expect([word, left]).to.deep.equal(['deducted', 1]);
    expect(atMs).to.be.within(before, await runner.nowMs());
    const held = (quantity: number): string => `held:${batch.batchId}:${quantity}`;
    expect(await sale.snapshot([batch.batchId])).to.deep.equal({
      state: 'open',
      unitsLeft: 1,
      buyers: { u1: 3, u2: 1 },
      requests: { 'u1/a': held(2), 'u2/a': held(1), 'u1/b': held(1) },
      pending: [batch.batchId],
      markers: { [batch.batchId]: `deducted${batch.body}` },
    });
    expect(Number(await sale.redis.zscore(sale.keys.pending, batch.batchId))).to.equal(atMs);
  });

  it('stores the metadata of a purchase in the marker for a re-drive and nowhere else', async () => {
    const sale = await runner.sale({ stock: 5, limitPerBuyer: 3 });
    const metadata = { cart: '42', note: '\u00e9 \u{1f389} "quoted" \\ \u0000' };
    const batch = batchOf(sale.sale, [{ ...purchaseOf('u1/a*2'), metadata }, purchaseOf('u2/a')]);
    expect(((await sale.deduct(batch)) as unknown[]).slice(0, 2)).to.deep.equal(['deducted', 2]);
    const after = await sale.snapshot([batch.batchId]);
    expect(after.markers).to.deep.equal({ [batch.batchId]: `deducted${batch.body}` });
    expect(after.requests).to.deep.equal({ 'u1/a': `held:${batch.batchId}:2`, 'u2/a': `held:${batch.batchId}:1` });
  });

  it('treats equal request ids of two buyers, and keys that look alike, as different requests', async () => {
    const sale = await runner.sale({ limitPerBuyer: 1 });
    const batch = batchOf(sale.sale, purchasesOf('u1/k', 'u2/k', 'u/1-k', 'u_1/k', 'u-1/k'));
    expect(((await sale.deduct(batch)) as unknown[])[0]).to.equal('deducted');
  });

  it('lets an `aborted` marker expire and keeps a `deducted` marker', async () => {
    const sale = await runner.sale({ stock: 1 });
    const refused = batchOf(sale.sale, purchasesOf('u1*2'));
    await sale.deduct(refused);
    expect(await sale.redis.pttl(sale.marker(refused.batchId))).to.be.within(ABORTED_LIFE_MS - 10_000, ABORTED_LIFE_MS);
    const taken = batchOf(sale.sale, purchasesOf('u1'));
    await sale.deduct(taken);
    expect(await sale.redis.pttl(sale.marker(taken.batchId))).to.equal(-1);
  });

  it('counts exactly even if stock and quantities are large', async () => {
    const sale = await runner.sale({ stock: 900_000_000, limitPerBuyer: 1000 });
    const batch = batchOf(sale.sale, purchasesOf('u1*1000', 'u2*999'));
    expect(((await sale.deduct(batch)) as unknown[]).slice(0, 2)).to.deep.equal(['deducted', 899_998_001]);
    expect(await sale.redis.get(sale.keys.stock)).to.equal('899998001');
    expect(await sale.redis.hgetall(sale.keys.buyers)).to.deep.equal({ u1: '1000', u2: '999' });
    expect(await sale.redis.hget(sale.keys.requests, 'u1/k1')).to.equal(`held:${batch.batchId}:1000`);
  });

  it('accepts a batch of the maximum size', async () => {
    const sale = await runner.sale({ stock: BATCH_SIZE_CEILING });
    const crowd = Array.from({ length: BATCH_SIZE_CEILING }, (_, index) => purchaseOf(`buyer-${index}`));
    const [word, left] = (await sale.deduct(batchOf(sale.sale, crowd))) as unknown[];
    expect([word, left]).to.deep.equal(['deducted', 0]);
    expect(await sale.redis.hlen(sale.keys.requests)).to.equal(BATCH_SIZE_CEILING);
  });
});

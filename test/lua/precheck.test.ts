import { expect } from 'chai';
import { BATCH_SIZE_CEILING } from '../../src/core/batch.js';
import { ScriptRunner } from './script-runner.js';
import { purchaseOf, purchasesOf } from '../helpers/sales.js';
import {
  BATCH_EPOCH,
  PURCHASE_CONDITIONS,
  saleIn,
  clashesOf,
  describeSetting,
  uncoveredPairs,
  type Condition,
} from './precedence.js';

/** Conditions in the order of the script's header. The purchase is always `u1/k1*1`. */
const CONDITIONS: readonly Condition[] = [
  { word: 'loading', setting: { state: 'missing' } },
  { word: 'loading', setting: { state: 'repair' } },
  { word: 'loading', setting: { server: 'another' } },
  { word: 'loading', setting: { buckets: 'another' } },
  ...PURCHASE_CONDITIONS,
];

describe('lua/precheck-4.lua', () => {
  const runner = ScriptRunner.inSuite();

  describe('words with a single reason', () => {
    for (const { word, setting } of CONDITIONS) {
      it(`returns ${word}: ${describeSetting(setting)}`, async () => {
        const sale = await saleIn(setting, runner, 'b1');
        const entry = setting.entry === undefined ? '' : `held:earlier-batch:${setting.entry}`;
        const [epoch, left, , ...answers] = (await sale.precheck(purchasesOf('u1/k1'), 1)) as unknown[];
        expect(answers).to.deep.equal([0, word, entry]);
        expect(epoch).to.equal(setting.state === 'missing' ? 0 : BATCH_EPOCH);
        const sells = !['loading', 'paused', 'closed', 'not_open'].includes(word);
        expect(left).to.equal(sells ? (setting.stock ?? 10) : -1);
      });
    }
  });

  describe('words with two reasons', () => {
    for (const { first, second, both } of clashesOf(CONDITIONS)) {
      it(`returns ${first.word} before ${second.word}: ${describeSetting(both)}`, async () => {
        const sale = await saleIn(both, runner, 'b1');
        expect(((await sale.precheck(purchasesOf('u1/k1'), 1)) as unknown[])[4]).to.equal(first.word);
      });
    }

    it('covers every pair of reasons that can hold at once', () => {
      expect(uncoveredPairs(CONDITIONS)).to.deep.equal(['replayed > request_conflict']);
    });
  });

  it('returns the number of buckets, and accepts any number if the sale was loaded without a number', async () => {
    const sale = await runner.sale({ stock: 5 });
    await sale.redis.hset(sale.keys.sale, 'buckets', 8);
    expect(await sale.precheck(purchasesOf('u1'), 8)).to.deep.equal([1, 5, 8]);
    expect(await sale.precheck(purchasesOf('u1'), 1)).to.deep.equal([1, -1, 8, 0, 'loading', '']);
    await sale.redis.hdel(sale.keys.sale, 'buckets');
    expect(await sale.precheck(purchasesOf('u1'), 1)).to.deep.equal([1, 5, 0]);
  });

  it('accepts a batch of the maximum size', async () => {
    const sale = await runner.sale({ stock: BATCH_SIZE_CEILING - 1 });
    const crowd = Array.from({ length: BATCH_SIZE_CEILING }, (_, index) => purchaseOf(`buyer-${index}`));
    const reply = await sale.precheck(crowd);
    expect(reply).to.deep.equal([1, BATCH_SIZE_CEILING - 1, 1, BATCH_SIZE_CEILING - 1, 'sold_out', '']);
  });
});

import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import { ABORTED_LIFE_MS, ScriptRunner } from './script-runner.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import { BATCH_EPOCH, saleIn, clashesOf, describeSetting, uncoveredPairs, type Condition } from './precedence.js';

/** Conditions in the order of the script's header. Without a condition, the script answers `aborted` with a marker. */
const CONDITIONS: readonly Condition[] = [
  { word: 'deducted', setting: { marker: 'deducted{"v":1}' } },
  { word: 'deducted', setting: { marker: 'deducted' } },
  { word: 'claimed', setting: { marker: 'claimed' } },
  { word: 'aborted', setting: { marker: 'aborted' } },
  { word: 'no_answer', setting: { state: 'missing' } },
  { word: 'no_answer', setting: { state: 'repair' } },
  { word: 'no_answer', setting: { server: 'another' } },
  { word: 'no_answer', setting: { epoch: 'earlier' } },
  { word: 'outlived', setting: { epoch: 'later' } },
];

describe('lua/resolve-2.lua', () => {
  const runner = ScriptRunner.inSuite();

  describe('words with a single reason, which write nothing', () => {
    for (const { word, setting } of CONDITIONS) {
      it(`returns ${word}: ${describeSetting(setting)}`, async () => {
        const batchId = newBatchId();
        const sale = await saleIn(setting, runner, batchId);
        const before = await sale.snapshot([batchId]);
        expect(await sale.resolve(batchId, BATCH_EPOCH)).to.equal(word);
        expect(await sale.snapshot([batchId])).to.deep.equal(before);
      });
    }
  });

  describe('words with two reasons', () => {
    for (const { first, second, both } of clashesOf(CONDITIONS)) {
      it(`returns ${first.word} before ${second.word}: ${describeSetting(both)}`, async () => {
        const batchId = newBatchId();
        const sale = await saleIn(both, runner, batchId);
        expect(await sale.resolve(batchId, BATCH_EPOCH)).to.equal(first.word);
      });
    }

    it('covers every pair of reasons, except two markers of one batch', () => {
      expect(uncoveredPairs(CONDITIONS)).to.deep.equal([
        'deducted > claimed',
        'deducted > aborted',
        'claimed > aborted',
      ]);
    });
  });

  for (const state of ['open', 'warm', 'paused', 'closed'] as const) {
    it(`aborts a batch without a marker, even in a sale that is ${state}, and lets the marker expire [T2]`, async () => {
      const sale = await runner.sale({}, state);
      const batchId = newBatchId();
      expect(await sale.resolve(batchId)).to.equal('aborted');
      expect(await sale.redis.get(sale.marker(batchId))).to.equal('aborted');
      expect(await sale.redis.pttl(sale.marker(batchId))).to.be.within(ABORTED_LIFE_MS - 10_000, ABORTED_LIFE_MS);
    });
  }

  it('agrees with deduct when both run at the same moment, two hundred times [T7]', async () => {
    const sale = await runner.sale({ stock: 200, limitPerBuyer: 200 });
    const other = await ScriptRunner.open();
    try {
      let taken = 0;
      await Promise.all(
        Array.from({ length: 200 }, async (_, index) => {
          const batch = batchOf(sale.sale, purchasesOf(`u${index}`));
          const deducting = () => sale.deduct(batch, other) as Promise<[string]>;
          const resolving = () => sale.resolve(batch.batchId);
          const [[deduct], resolve] =
            index % 2 === 0
              ? await Promise.all([deducting(), resolving()])
              : await Promise.all([resolving(), deducting()]).then(([d, r]) => [r, d] as const);
          expect(`${deduct} ${String(resolve)}`).to.be.oneOf(['deducted deducted', 'aborted aborted']);
          if (deduct === 'deducted') taken++;
        }),
      );
      expect((await sale.snapshot()).unitsLeft).to.equal(200 - taken);
    } finally {
      await other.close();
    }
  });
});

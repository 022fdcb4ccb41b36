import { expect } from 'chai';
import fc from 'fast-check';
import type { Batch } from '../../src/domain/batch.js';
import type { Purchase } from '../../src/domain/purchase.js';
import { silentLog } from '../../src/ports/log.js';
import type { Release } from '../../src/ports/settlement-ledger.js';
import { createSaleLedger } from '../../src/redis/sale-ledger.js';
import { createSettlementLedger } from '../../src/redis/settlement-ledger.js';
import { createStockLedger } from '../../src/redis/stock-ledger.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryLedger } from '../helpers/memory/memory-ledger.js';
import { SaleBench, ScriptBench } from '../helpers/script-bench.js';
import { batchOf, saleOf } from '../helpers/sales.js';

/** Few names, so that purchases meet: three buyers, three keys each, five batches. */
const BUYERS = ['u1', 'u2', 'u3'];
const KEYS = ['a', 'b', 'c'];
const BATCHES = 5;

type Step =
  | { readonly do: 'precheck'; readonly purchases: Purchase[] }
  | { readonly do: 'deduct'; readonly batch: number; readonly purchases: Purchase[]; readonly epoch: number }
  | { readonly do: 'decide'; readonly batch: number; readonly epoch: number }
  | { readonly do: 'settle'; readonly batch: number; readonly of: Purchase[] }
  | { readonly do: 'release'; readonly release: Omit<Release, 'saleId' | 'bucket' | 'batchId'>; readonly batch: number }
  | { readonly do: 'park'; readonly batch: number }
  | { readonly do: 'gate'; readonly state: 'warm' | 'open' | 'paused' | 'closed' }
  | { readonly do: 'repair' }
  | { readonly do: 'warm'; readonly stock: number };

const purchase = fc.record({
  userId: fc.constantFrom(...BUYERS),
  requestId: fc.constantFrom(...KEYS),
  quantity: fc.integer({ min: 1, max: 3 }),
});
const purchases = fc.array(purchase, { minLength: 1, maxLength: 5 });
const batch = fc.integer({ min: 0, max: BATCHES - 1 });
/** Mostly the epoch of the sale. */
const epoch = fc.constantFrom(1, 1, 1, 1, 1, 2);
/** The order of a request has always the same id, but for a few that lie. */
const orderIdOf = ({ userId, requestId }: { userId: string; requestId: string }): string =>
  `${BUYERS.indexOf(userId) + 1}0${KEYS.indexOf(requestId) + 1}`;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('precheck' as const), purchases }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('deduct' as const), batch, purchases, epoch }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('decide' as const), batch, epoch }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('settle' as const), batch, of: purchases }) },
  {
    weight: 4,
    arbitrary: fc
      .record({
        purchase,
        batch: fc.integer({ min: -1, max: BATCHES - 1 }),
        withUnits: fc.boolean(),
        lie: fc.boolean(),
      })
      .map(({ purchase: { userId, requestId }, batch: number, withUnits, lie }) => {
        const orderId = lie ? '999' : orderIdOf({ userId, requestId });
        return { do: 'release' as const, release: { userId, requestId, orderId, withUnits }, batch: number };
      }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('park' as const), batch }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('warm', 'open', 'open', 'open', 'paused', 'closed').map((state) => ({
      do: 'gate' as const,
      state: state as 'warm' | 'open' | 'paused' | 'closed',
    })),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: 'repair' }, { do: 'warm', stock: 99 }) },
);

describe('lua: random histories against a plain model', function () {
  this.timeout(60_000);
  let bench: ScriptBench;
  before(async () => {
    bench = await ScriptBench.open();
  });
  after(() => bench?.close());

  /** Words that the histories have met, so that a model test that meets nothing does not pass. */
  const met = new Set<string>();

  const play = async (steps: readonly Step[], stock: number, limitPerBuyer: number): Promise<void> => {
    const sale = saleOf({ stock, limitPerBuyer });
    const ref = { saleId: sale.saleId, bucket: 0 };
    const batches = Array.from({ length: BATCHES }, (_, index) => `batch-${index}`);
    const real = {
      stock: createStockLedger(bench.connection, silentLog),
      sales: createSaleLedger(bench.connection),
      settlement: createSettlementLedger(bench.connection),
      bucket: new SaleBench(bench, sale),
    };
    const memory = new MemoryLedger({ clock: new ManualClock(Date.now()) });
    const model = { stock: memory, sales: memory, settlement: memory, bucket: memory.bucket(ref) };

    /** The first body of a batch is its only one: the program never forms two batches of one id. */
    const sealed = new Map<number, Batch>();
    const seal = (number: number, list: Purchase[], ofEpoch: number): Batch => {
      const known = sealed.get(number) ?? batchOf({ ...sale, epoch: ofEpoch }, list, batches[number]);
      sealed.set(number, known);
      return known;
    };
    const take = (world: typeof real | typeof model, { ...next }: Step): Promise<unknown> => {
      switch (next.do) {
        case 'precheck':
          return world.stock.precheck(ref, next.purchases);
        case 'deduct':
          return world.stock.deduct(seal(next.batch, next.purchases, next.epoch));
        case 'decide':
          return world.stock.decide({ ...ref, batchId: batches[next.batch] as string, epoch: next.epoch });
        case 'settle': {
          const of = next.of.filter((one, index) => next.of.findIndex((other) => same(one, other)) === index);
          const orders = of.map((one) => ({ ...one, orderId: orderIdOf(one) }));
          return world.settlement.settle([{ batch: seal(next.batch, next.of, 1), orders }]);
        }
        case 'release': {
          const batchId = next.batch < 0 ? '' : (batches[next.batch] as string);
          return world.settlement.release([{ ...ref, ...next.release, batchId }]);
        }
        case 'park':
          return world.settlement.park(batchOf(sale, [], batches[next.batch]));
        case 'gate':
          return world.sales.gate(sale, next.state);
        case 'warm':
          return world.sales.warm({ ...sale, stock: next.stock });
        case 'repair':
          return Promise.resolve();
      }
    };

    expect(await real.sales.warm(sale)).to.equal(await model.sales.warm(sale));
    await Promise.all([real.sales.gate(sale, 'open'), model.sales.gate(sale, 'open')]);
    const initial = stock;
    for (const next of steps) {
      if (next.do === 'repair') {
        // Only a repair gets in and out of this state, so both are moved by hand.
        const state = model.bucket.sale?.state === 'repair' ? 'open' : 'repair';
        if (model.bucket.sale) model.bucket.sale.state = state;
        await real.bucket.redis.hset(real.bucket.keys.sale, 'state', state);
        continue;
      }
      const label = JSON.stringify(next);
      const expected = await take(model, next);
      for (const [word] of JSON.stringify(expected ?? null).matchAll(/(?<=")[a-z_]+(?=")/g))
        met.add(`${next.do} ${word}`);
      expect(await take(real, next), label).to.deep.equal(expected);
      const [found, wanted] = [await real.bucket.snapshot(batches), model.bucket.snapshot()];
      expect(found, label).to.deep.equal(wanted);

      // The invariants, read from Redis alone (I1, I4).
      expect(found.unitsLeft, label).to.be.at.least(0);
      const live = Object.entries(found.requests).filter(([, entry]) => !entry.startsWith('released'));
      const units = (entries: [string, string][]): number =>
        entries.reduce((sum, [, entry]) => sum + Number(entry.split(':')[2]), 0);
      for (const buyer of BUYERS) {
        const own = units(live.filter(([key]) => key.startsWith(`${buyer}/`)));
        expect(found.buyers[buyer] ?? 0, label).to.equal(own);
        expect(own, label).to.be.at.most(limitPerBuyer);
      }
      expect(found.unitsLeft + units(live), label).to.be.at.most(initial);
    }
  };

  it('replies and state are the same after every step', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 60, size: 'max' }),
        fc.integer({ min: 0, max: 12 }),
        fc.integer({ min: 1, max: 6 }),
        play,
      ),
      { numRuns: 80, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: false },
    );
    expect([...met]).to.include.members([
      ...['loading', 'paused', 'closed', 'not_open', 'limit_reached', 'sold_out', 'replayed', 'request_conflict'].map(
        (word) => `precheck ${word}`,
      ),
      ...['deducted', 'already_deducted', 'refused', 'aborted', 'stale_epoch'].map((word) => `deduct ${word}`),
      ...['paused', 'limit_reached', 'sold_out', 'replayed', 'request_conflict'].map((word) => `deduct ${word}`),
      ...['deducted', 'aborted', 'no_answer'].map((word) => `decide ${word}`),
      ...['release released', 'release nothing', 'gate gated', 'gate repairing', 'warm already_warm'],
    ]);
  });
});

const same = (a: Purchase, b: Purchase): boolean => a.userId === b.userId && a.requestId === b.requestId;

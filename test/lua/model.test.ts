import { expect } from 'chai';
import fc from 'fast-check';
import type { Batch } from '../../src/core/batch.js';
import { OperationalError } from '../../src/core/errors.js';
import type { RequestEntry } from '../../src/core/outcome.js';
import { type Purchase, purchaseKey } from '../../src/core/purchase.js';
import { silentLog } from '../helpers/silent-log.js';
import type { StoredRequest } from '../../src/core/ports/reconcile-store.js';
import type { Release } from '../../src/core/ports/batch-store.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../helpers/memory/memory-redis.js';
import { MemoryRepairStore } from '../helpers/memory/memory-repair-store.js';
import { SaleScripts, ScriptRunner } from './script-runner.js';
import { batchOf, saleOf } from '../helpers/sales.js';

/** So few that purchases collide: three buyers, three keys each, twelve batches. */
const BUYERS = ['u1', 'u2', 'u3'];
const KEYS = ['a', 'b', 'c'];
const BATCHES = 12;
const batchIdOf = (number: number): string => `batch-${number}`;
/** Longer than any history, ms. */
const LEASE_MS = 600_000;

type Step =
  | { readonly do: 'precheck'; readonly purchases: Purchase[] }
  | { readonly do: 'deduct'; readonly batch: number; readonly purchases: Purchase[]; readonly epoch: number }
  | { readonly do: 'resolve'; readonly batch: number; readonly epoch: number }
  | { readonly do: 'markRecorded'; readonly batch: number; readonly of: Purchase[] }
  | { readonly do: 'release'; readonly release: Omit<Release, 'saleId' | 'bucket' | 'batchId'>; readonly batch: number }
  | { readonly do: 'park'; readonly batch: number }
  | { readonly do: 'setState'; readonly state: 'warm' | 'open' | 'paused' | 'closed' }
  | { readonly do: 'restart' }
  | { readonly do: 'findRequest'; readonly of: Purchase }
  | { readonly do: 'statusOf' }
  | { readonly do: 'reacquire'; readonly batch: number; readonly purchases: Purchase[]; readonly recorded: Purchase[] }
  | {
      readonly do: 'lock' | 'restoreMarker';
      readonly token: string;
      readonly batch: number;
      readonly isPending: boolean;
    }
  | { readonly do: 'stage'; readonly token: string; readonly entries: StoredRequest[] }
  | { readonly do: 'swap'; readonly token: string; readonly epoch: number; readonly unitsLeft: number }
  | { readonly do: 'warm'; readonly stock: number };

const purchase = fc.record({
  userId: fc.constantFrom(...BUYERS),
  requestId: fc.constantFrom(...KEYS),
  quantity: fc.integer({ min: 1, max: 3 }),
});
const purchases = fc.array(purchase, { minLength: 1, maxLength: 3 });
const batch = fc.integer({ min: 0, max: BATCHES - 1 });
/** Added to the epoch of the sale at that time. */
const epoch = fc.constantFrom(0, 0, 0, 0, 0, -1, 1);
/** Tokens of two keepers. A keeper may continue without its lease. */
const token = fc.constantFrom('one', 'one', 'one', 'two');
/** Returns the order id of a request. Some releases use a wrong id. */
const orderIdOf = ({ userId, requestId }: { userId: string; requestId: string }): string =>
  `${BUYERS.indexOf(userId) + 1}0${KEYS.indexOf(requestId) + 1}`;

const staged = fc
  .record({ purchase, batch, state: fc.constantFrom('held' as const, 'ordered' as const, 'released' as const) })
  .map(({ purchase: { userId, requestId, quantity }, batch: number, state }): StoredRequest => {
    const entry: RequestEntry =
      state === 'held'
        ? { state, batchId: batchIdOf(number), quantity }
        : { state, orderId: orderIdOf({ userId, requestId }), quantity };
    return [purchaseKey({ userId, requestId }), entry];
  });

const entries = fc.array(staged, { maxLength: 4 });
const unitsLeft = fc.integer({ min: 0, max: 6 });

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('precheck' as const), purchases }) },
  { weight: 12, arbitrary: fc.record({ do: fc.constant('deduct' as const), batch, purchases, epoch }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('resolve' as const), batch, epoch }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('markRecorded' as const), batch, of: purchases }) },
  {
    weight: 4,
    arbitrary: fc
      .record({
        purchase,
        batch: fc.integer({ min: -1, max: BATCHES - 1 }),
        withUnits: fc.boolean(),
        hasWrongOrder: fc.boolean(),
      })
      .map(({ purchase: { userId, requestId }, batch: number, withUnits, hasWrongOrder }) => {
        const orderId = hasWrongOrder ? '999' : orderIdOf({ userId, requestId });
        return { do: 'release' as const, release: { userId, requestId, orderId, withUnits }, batch: number };
      }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('park' as const), batch }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom('warm', 'open', 'open', 'open', 'paused', 'closed').map((state) => ({
      do: 'setState' as const,
      state: state as 'warm' | 'open' | 'paused' | 'closed',
    })),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ do: 'warm', stock: 99 }) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: 'restart' }, { do: 'statusOf' }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('findRequest' as const), of: purchase }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('reacquire' as const), batch, purchases, recorded: purchases }) },
  {
    weight: 2,
    arbitrary: fc.oneof(
      fc.record({
        do: fc.constantFrom('lock' as const, 'restoreMarker' as const),
        token,
        batch,
        isPending: fc.boolean(),
      }),
      fc.record({ do: fc.constant('stage' as const), token, entries }),
      fc.record({ do: fc.constant('swap' as const), token, epoch, unitsLeft }),
    ),
  },
);

/** A repair with its steps in order, because random steps alone would rarely complete one. */
const wholeRepair: fc.Arbitrary<Step[]> = fc
  .record({ token, batch, isPending: fc.boolean(), entries, epoch: fc.constantFrom(1, 1, 1, 2, 0), unitsLeft })
  .map(({ token: own, ...parts }) => [
    ...(['lock', 'restoreMarker'] as const).map((act) => ({
      do: act,
      token: own,
      batch: parts.batch,
      isPending: parts.isPending,
    })),
    { do: 'stage', token: own, entries: parts.entries },
    { do: 'swap', token: own, epoch: parts.epoch, unitsLeft: parts.unitsLeft },
  ]);
const history = fc
  .array(fc.oneof({ weight: 14, arbitrary: step.map((one) => [one]) }, { weight: 1, arbitrary: wholeRepair }), {
    minLength: 10,
    maxLength: 50,
    size: 'max',
  })
  .map((parts) => parts.flat());

describe('lua: random histories, compared with the stores in memory', () => {
  const runner = ScriptRunner.inSuite();

  /** Words that the scripts answered. Too few fail the test. */
  const met = new Set<string>();

  const play = async (steps: readonly Step[], stock: number, limitPerBuyer: number): Promise<void> => {
    const sale = saleOf({ stock, limitPerBuyer });
    const ref = { saleId: sale.saleId, bucket: 0 };
    const batches = Array.from({ length: BATCHES }, (_, index) => batchIdOf(index));
    const real = {
      stock: createStockStore(runner.connection, silentLog),
      sales: createSaleStore(runner.connection),
      batches: createBatchStore(runner.connection),
      repair: createRepairStore(runner.connection),
      bucket: new SaleScripts(runner, sale),
    };
    const memory = new MemoryRedis({ clock: new ManualClock(Date.now()) });
    const repair = new MemoryRepairStore(memory);
    const model = { stock: memory, sales: memory, batches: memory, repair, bucket: memory.bucket(ref) };

    /** Every batch keeps its first body, because no program seals two batches with one id. */
    const sealed = new Map<number, Batch>();
    const seal = (number: number, list: Purchase[], ofEpoch: number): Batch => {
      const known = sealed.get(number) ?? batchOf({ ...sale, epoch: ofEpoch }, list, batches[number]);
      sealed.set(number, known);
      return known;
    };
    const run = (stores: typeof real | typeof model, { ...next }: Step): Promise<unknown> => {
      switch (next.do) {
        case 'precheck':
          return stores.stock.precheck(ref, next.purchases);
        case 'deduct':
          return stores.stock.deduct(seal(next.batch, next.purchases, next.epoch));
        case 'resolve':
          return stores.stock.resolve({ ...ref, batchId: batches[next.batch] as string, epoch: next.epoch });
        case 'markRecorded': {
          const of = next.of.filter(isFirst);
          const orders = of.map((one) => ({ ...one, orderId: orderIdOf(one), state: 'pending_payment' as const }));
          return stores.batches.markRecorded([{ batch: seal(next.batch, next.of, 1), orders }]);
        }
        case 'release': {
          const batchId = next.batch < 0 ? '' : (batches[next.batch] as string);
          return stores.batches.release([{ ...ref, ...next.release, batchId }]);
        }
        case 'park':
          return stores.batches.park(batchOf(sale, [], batches[next.batch]));
        case 'setState':
          return stores.sales.setState(sale, next.state);
        case 'warm':
          return stores.sales.warm({ ...sale, stock: next.stock });
        case 'findRequest':
          return stores.stock.findRequest(ref, next.of.userId, next.of.requestId);
        case 'statusOf':
          return stores.repair.statusOf([ref]);
        case 'reacquire': {
          const { epoch: ofSale = 0 } = model.bucket.sale ?? {};
          const of = seal(next.batch, next.purchases.filter(isFirst), 1);
          // deduct would refuse the body, and no worker could read it
          if (!of.purchases.every(isFirst)) return Promise.resolve();
          return stores.batches.reacquire(of, ofSale, new Set(next.recorded.map(purchaseKey)));
        }
        case 'lock':
          return stores.repair.lock(ref, next.token, LEASE_MS);
        case 'restoreMarker':
          return stores.repair.restoreMarker(
            seal(next.batch, [{ userId: 'u1', requestId: 'a', quantity: 1 }], 1),
            ref.bucket,
            next.token,
            next.isPending,
          );
        case 'stage':
          return stores.repair.stage(ref, next.token, next.entries);
        case 'swap': {
          const { opensAtMs, closesAtMs, buckets } = sale;
          const rebuilt = { state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
          return stores.repair.swap(ref, next.token, { ...rebuilt, epoch: next.epoch, unitsLeft: next.unitsLeft });
        }
        case 'restart':
          return Promise.resolve();
      }
    };

    expect(await real.sales.warm(sale)).to.equal(await model.sales.warm(sale));
    await Promise.all([real.sales.setState(sale, 'open'), model.sales.setState(sale, 'open')]);
    const initial = stock;
    let isRebuilt = false; // a staged repair may exceed the limit
    for (const step of steps) {
      const next =
        'epoch' in step ? { ...step, epoch: Math.max(1, step.epoch + (model.bucket.sale?.epoch ?? 1)) } : step;
      if (next.do === 'restart') {
        memory.restart();
        await real.bucket.restart();
        continue;
      }
      const label = JSON.stringify(next);
      const expected = await run(model, next).catch(faultOf);
      for (const [word] of JSON.stringify(expected ?? null).matchAll(/(?<=")[a-z_]+(?=")/g))
        met.add(`${next.do} ${word}`);
      expect(await run(real, next).catch(faultOf), label).to.deep.equal(expected);
      isRebuilt ||= expected === 'swapped';
      const [found, wanted] = [await real.bucket.snapshot(batches), model.bucket.snapshot()];
      expect(found, label).to.deep.equal(wanted);

      // The invariants I1 and I4, read from Redis alone.
      expect(found.unitsLeft, label).to.be.at.least(0);
      const live = Object.entries(found.requests).filter(([, entry]) => !entry.startsWith('released'));
      const units = (entries: [string, string][]): number =>
        entries.reduce((sum, [, entry]) => sum + Number(entry.split(':')[2]), 0);
      for (const buyer of BUYERS) {
        const own = units(live.filter(([key]) => key.startsWith(`${buyer}/`)));
        expect(found.buyers[buyer] ?? 0, label).to.equal(own);
        if (!isRebuilt) expect(own, label).to.be.at.most(limitPerBuyer);
      }
      if (!isRebuilt) expect(found.unitsLeft + units(live), label).to.be.at.most(initial);
    }
  };

  it('gives the same replies and state as the stores in memory after every step', async () => {
    await fc.assert(fc.asyncProperty(history, fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 6 }), play), {
      numRuns: 80,
    });
    const often = [
      ...['loading', 'limit_reached', 'sold_out', 'request_conflict'].map((word) => `precheck ${word}`),
      ...['deducted', 'already_deducted', 'refused', 'aborted', 'stale_epoch'].map((word) => `deduct ${word}`),
      ...['limit_reached', 'sold_out', 'request_conflict'].map((word) => `deduct ${word}`),
      ...['deducted', 'aborted', 'claimed', 'no_answer'].map((word) => `resolve ${word}`),
      'reacquire claimed',
      'reacquire unavailable',
      'findRequest unsure',
      'statusOf open',
      'lock locked',
      'lock busy',
      'stage staged',
      'stage superseded',
      'restoreMarker restored',
      'restoreMarker superseded',
      'swap swapped',
      'swap superseded',
      'release nothing',
      'setState set',
      'setState repairing',
      'warm already_warm',
    ];
    expect(often.filter((word) => !met.has(word))).to.deep.equal([]);
  });
});

/** Some words reach the caller as an error. */
function faultOf(error: unknown): { fault: string } {
  if (!(error instanceof OperationalError)) throw error;
  return { fault: error.message };
}

/** The decoder refuses a batch that contains a key twice. */
const isFirst = (one: Purchase, index: number, all: readonly Purchase[]): boolean =>
  all.findIndex((other) => purchaseKey(other) === purchaseKey(one)) === index;

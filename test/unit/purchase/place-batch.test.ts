import { expect } from 'chai';
import fc from 'fast-check';
import sinon from 'sinon';
import { decodeBatch, type Batch } from '../../../src/core/batch.js';
import type { Sale } from '../../../src/core/sale.js';
import { OperationalError } from '../../../src/core/errors.js';
import { TOPICS } from '../../../src/core/topics.js';
import { signedMessages } from '../../helpers/signatures.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import { createCheckBack } from '../../../src/purchase/check-back.js';
import type { HomeBucket } from '../../../src/core/bucket.js';
import { placeBatch, type Deliver, type PlaceBatchPorts } from '../../../src/purchase/place-batch.js';
import { withReplicaBarrier } from '../../../src/redis/replica-barrier.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import type { MemoryBucket } from '../../helpers/memory/memory-bucket.js';
import { MemoryRedis } from '../../helpers/memory/memory-redis.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

interface Placed {
  readonly verdict: string;
  /** The answer of each purchase. Undefined for a purchase placed again. */
  readonly answers: readonly (string | undefined)[];
  /** Indexes of the purchases placed again. */
  readonly again: readonly number[];
  /** Units left, as reported to the sold-out flags. */
  readonly unitsLeft: number | null;
}

/** Its methods as plain functions, because a class instance cannot be spread. */
const storeOf = (store: MemoryRedis): PlaceBatchPorts['store'] => ({
  precheck: (...args) => store.precheck(...args),
  deduct: (...args) => store.deduct(...args),
  resolve: (...args) => store.resolve(...args),
});

describe('place-batch', () => {
  let clock: ManualClock;
  let store: MemoryRedis;
  /** The sale as the batch sees it. */
  let stock: PlaceBatchPorts['store'];
  let broker: MemoryBroker;
  let sale: Sale;
  let sent: Batch[];
  let events: string[];
  let observed: (number | null)[];
  let forgotten: string[];
  let logged: object[];
  /** Runs between the half message and the deduct, to change the state in that gap. */
  let inTheGap: (batch: Batch) => unknown;
  /** Runs before the broker accepts the rollback. */
  let inTheRollback: (batch: Batch) => unknown;

  beforeEach(() => {
    clock = new ManualClock();
    store = new MemoryRedis({ clock });
    stock = store;
    broker = new MemoryBroker({ clock });
    sent = [];
    events = [];
    observed = [];
    forgotten = [];
    logged = [];
    inTheGap = inTheRollback = () => undefined;
  });

  const bucket = (): MemoryBucket => store.bucket({ saleId: sale.saleId, bucket: 0 });
  const openSale = async (parts: Partial<Sale> = {}): Promise<void> => {
    sale = saleOf(parts, clock.nowMs());
    await store.warm(sale);
    await store.setState(sale, 'open');
  };

  const home = (buckets = 1): HomeBucket => ({ saleId: sale.saleId, bucket: 0, buckets });
  const ports = (): PlaceBatchPorts => ({
    store: stock,
    channel: channel(),
    units: partial({ fetch: () => Promise.reject(new Error('a sale with one bucket fetches no units')) }),
    flags: partial({ observe: (_, unitsLeft) => void observed.push(unitsLeft) }),
    snapshots: partial({ forget: async (saleId) => void forgotten.push(saleId) }),
    clock,
    log: partial({ error: (fields) => void logged.push(fields) }),
  });

  /** The memory broker, which records its calls. */
  const channel = (): PurchaseChannel => {
    const inner = broker.purchaseChannel(createCheckBack((ref) => store.resolve(ref), signedMessages(), silentLog));
    return {
      async sendHalf(batch) {
        sent.push(batch);
        const half = await inner.sendHalf(batch);
        await inTheGap(batch);
        if (typeof half === 'string') return half;
        return {
          commit: async () => {
            events.push('commit');
            await half.commit();
          },
          rollback: async () => {
            events.push('rollback');
            await inTheRollback(batch);
            return half.rollback();
          },
        };
      },
    };
  };

  const place = async (...texts: string[]): Promise<Placed> => {
    const results: string[] = [];
    const deliver: Deliver = (index, { outcome }) => {
      expect(results[index], `purchase ${index} gets one result`).to.equal(undefined);
      results[index] = outcome;
      events.push(`${outcome}@${index}`);
    };
    observed = [];
    const { precheck } = store.calls;
    const verdict = await placeBatch(home(), purchasesOf(...texts), TRACEPARENT, deliver, ports());
    expect(Object.keys(results), 'every purchase gets a result').to.have.length(texts.length);
    expect(observed, 'the flags see each batch once').to.have.length(store.calls.precheck - precheck);
    return {
      verdict,
      answers: results.map((outcome) => (outcome === 'again' ? undefined : outcome)),
      again: results.flatMap((outcome, index) => (outcome === 'again' ? [index] : [])),
      unitsLeft: observed[0] as number | null,
    };
  };
  const committed = (): readonly string[] => broker.published(TOPICS.purchase);
  /** Makes the broker ask about open messages, as it does after ten seconds. */
  const letTheBrokerAsk = async (): Promise<void> => {
    clock.advance(60_000);
    await broker.runChecks();
  };

  describe('precheck answers first', () => {
    it('forgets a snapshot with fewer buckets than the sale, but keeps a snapshot with more', async () => {
      await openSale();
      bucket().sale!.buckets = 4;
      const isForgotten = async (buckets: number): Promise<boolean> => {
        forgotten = [];
        await placeBatch(home(buckets), purchasesOf(`of-${buckets}`), '', () => undefined, ports());
        return forgotten.includes(sale.saleId);
      };
      expect([await isForgotten(1), await isForgotten(4), await isForgotten(8)]).to.deep.equal([true, false, false]);
    });

    it('sends no half message for a batch without survivors', async () => {
      await openSale({ stock: 0 });
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'all_answered_by_precheck', again: [], unitsLeft: 0 });
      expect(placed.answers).to.deep.equal(['sold_out', 'sold_out']);
      expect(sent).to.deep.equal([]);
    });

    it('returns `not_enough_left` for several units if fewer are left, and otherwise `sold_out`', async () => {
      await openSale({ stock: 3, limitPerBuyer: 9 });
      expect((await place('u1*5', 'u2*3')).answers).to.deep.equal(['not_enough_left', 'accepted']);
      expect((await place('u3*5', 'u4')).answers).to.deep.equal(['sold_out', 'sold_out']);
    });

    it('answers replays, conflicts and limits, and continues with the other purchases', async () => {
      await openSale({ limitPerBuyer: 2 });
      await place('u1/k*2', 'u2/k');
      const placed = await place('u1/k*2', 'u3', 'u2/k*2', 'u1/k2', 'u4*2');
      expect(placed.answers).to.deep.equal(['replayed', 'accepted', 'request_conflict', 'limit_reached', 'accepted']);
      expect(sent[1]?.purchases).to.deep.equal(purchasesOf('u3', 'u4*2'));
    });

    it('returns `outcome_unknown` for a replay that no replica has [R7]', async () => {
      await openSale({ limitPerBuyer: 2 });
      await place('u1');
      let passes = 0;
      const pass = async (): Promise<boolean> => (passes++, false);
      stock = withReplicaBarrier(storeOf(store), { pass, close: async () => undefined });
      expect((await place('u1')).answers).to.deep.equal(['outcome_unknown']);
      inTheGap = async (batch) => {
        inTheGap = () => undefined;
        await store.deduct(batchOf(batch, purchasesOf('u2'))); // its own retry was faster
      };
      const placed = await place('u2', 'u3');
      expect(placed).to.deep.include({ verdict: 'refused', again: [1], answers: ['outcome_unknown', undefined] });
      expect(passes).to.equal(2);
      expect((await place('u3*3')).answers, 'a refusal needs no replica').to.deep.equal(['limit_reached']);
      expect(passes).to.equal(2);
    });

    it('sets no sold-out flag for a sale that is not loaded', async () => {
      sale = saleOf();
      const placed = await place('u1');
      expect(placed.answers).to.deep.equal(['loading']);
      expect(placed.unitsLeft, 'unknown is not zero: it must not count as sold out').to.equal(null);
    });

    it('throws a fault, and sends no message, if Redis does not answer [R8]', async () => {
      await openSale();
      store.breakNext('precheck_fails');
      const failed = await place('u1').catch((error: unknown) => error);
      expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
      expect([sent, events]).to.deep.equal([[], []]);
    });
  });

  describe('a batch that fits', () => {
    it('is accepted and committed, and reports the number of units left to the flags', async () => {
      await openSale({ stock: 5 });
      const placed = await place('u1*2', 'u2');
      expect(placed).to.deep.include({ verdict: 'accepted', again: [], unitsLeft: 5 });
      expect(placed.answers).to.deep.equal(['accepted', 'accepted']);
      expect(committed()).to.deep.equal([sent[0]?.body]);
      expect(bucket().unitsLeft).to.equal(2);
    });

    it('uses one body for message, marker and re-drive', async () => {
      await openSale({ epoch: 3 });
      await place('u1*2', 'u2/b');
      const decoded = decodeBatch(committed()[0] ?? '');
      expect(decoded).to.deep.equal({ outcome: 'decoded', batch: sent[0] });
      expect(sent[0]).to.deep.include({ saleId: sale.saleId, bucket: 0, epoch: 3, traceparent: TRACEPARENT });
      expect(sent[0]?.purchases).to.deep.equal(purchasesOf('u1*2', 'u2/b'));
      const [pending] = await store.stalePending({ saleId: sale.saleId, bucket: 0 }, 0, 1);
      expect(pending?.body).to.equal(sent[0]?.body);
    });

    it('has its own random id [M13]', async () => {
      await openSale({ stock: 50, limitPerBuyer: 50 });
      for (let i = 0; i < 20; i++) await place(`u1/k${i}`);
      expect(new Set(sent.map(({ batchId }) => batchId)).size).to.equal(20);
      for (const { batchId } of sent) expect(batchId).to.match(/^[A-Za-z0-9_-]{22}$/);
    });

    it('is answered before the commit, because the units are held in any case', async () => {
      await openSale();
      await place('u1', 'u2');
      expect(events).to.deep.equal(['accepted@0', 'accepted@1', 'commit']);
    });

    it('keeps its answer if the commit is lost, and the check-back commits [T4]', async () => {
      await openSale();
      broker.breakNext('commit_lost');
      expect((await place('u1')).answers).to.deep.equal(['accepted']);
      expect(committed(), 'the fault happened').to.deep.equal([]);
      await letTheBrokerAsk();
      expect(committed()).to.deep.equal([sent[0]?.body]);
    });

    it('is accepted, not refused, if it is already deducted', async () => {
      await openSale({ stock: 1 });
      inTheGap = (batch) => store.deduct(batch); // as if the driver had sent it twice
      expect((await place('u1')).answers).to.deep.equal(['accepted']);
      expect(committed()).to.have.length(1);
      expect(bucket().unitsLeft).to.equal(0);
    });
  });

  describe('the half message', () => {
    it('returns `unavailable` and neither deducts nor stores while the broker is down [M1]', async () => {
      await openSale();
      broker.breakNext('half_unavailable');
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'unavailable', again: [] });
      expect(placed.answers).to.deep.equal(['unavailable', 'unavailable']);
      expect(store.calls.deduct).to.equal(0);
    });

    for (const fault of ['half_reply_lost', 'half_lost'] as const) {
      it(`deducts nothing if its reply is lost (${fault}), and allows the same key again [T6]`, async () => {
        await openSale();
        broker.breakNext(fault);
        const placed = await place('u1', 'u2');
        expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
        expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
        expect(store.calls.deduct).to.equal(0);
        await letTheBrokerAsk();
        expect([broker.openHalves, committed()]).to.deep.equal([[], []]);
        expect((await place('u1')).answers).to.deep.equal(['accepted']);
      });
    }
  });

  describe('purchases that Redis refuses together', () => {
    const sizes = (): number[] => sent.map(({ purchases }) => purchases.length);

    it('are placed in halves until only the bad purchase is refused [G14]', async () => {
      await openSale({ stock: 9 });
      store.poisoned.add('u3/k1');
      const placed = await place('u1', 'u2', 'u3', 'u4', 'u5');
      expect(placed).to.deep.include({ verdict: 'refused_by_store', again: [] });
      expect(placed.answers).to.deep.equal(['accepted', 'accepted', 'refused_by_store', 'accepted', 'accepted']);
      expect(sizes()).to.deep.equal([5, 3, 2, 2, 1]);
      expect(new Set(sent.map(({ batchId }) => batchId)).size, 'each half has its own marker').to.equal(5);
      expect([broker.openHalves, committed().length, bucket().unitsLeft]).to.deep.equal([[], 2, 5]);
      expect(logged).to.have.length(1);
    });

    it('are the survivors of precheck, each under its own index', async () => {
      await openSale({ stock: 9, limitPerBuyer: 2 });
      store.poisoned.add('u4/k1');
      const placed = await place('u1*3', 'u2', 'u3*3', 'u4', 'u5');
      expect(placed.answers).to.deep.equal([
        'limit_reached',
        'accepted',
        'limit_reached',
        'refused_by_store',
        'accepted',
      ]);
    });

    it('are found at any place in the batch with few half messages [G14]', async () => {
      const batches = fc.array(fc.boolean(), { minLength: 1, maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(batches, async (poisoned) => {
          await openSale({ stock: 40 });
          [sent, logged] = [[], []];
          const users = poisoned.map((_, index) => `u${index}`);
          store.poisoned.clear();
          for (const [index, userId] of users.entries()) if (poisoned[index]) store.poisoned.add(`${userId}/k1`);
          const { answers } = await place(...users);
          expect(answers).to.deep.equal(poisoned.map((isBad) => (isBad ? 'refused_by_store' : 'accepted')));
          const bad = poisoned.filter(Boolean).length;
          expect([broker.openHalves, bucket().unitsLeft, logged.length]).to.deep.equal([
            [],
            40 - users.length + bad,
            bad,
          ]);
          expect(sent.length).to.be.at.most(1 + 2 * bad * Math.ceil(Math.log2(users.length)));
        }),
        { numRuns: 60 },
      );
    });

    it('get the stock count of their own half, not of the first precheck [G14]', async () => {
      await openSale({ stock: 3, limitPerBuyer: 3 });
      store.poisoned.add('u3/k1');
      let others = purchasesOf('u8*3');
      inTheRollback = () => {
        if (others.length > 0) void store.deduct(batchOf(sale, others));
        others = [];
      };
      expect((await place('u1*2', 'u3')).answers, 'no unit of the 3 is left').to.deep.equal(['sold_out', 'sold_out']);
    });

    it('are split even if precheck refuses them [G14]', async () => {
      await openSale({ stock: 9 });
      stock = {
        ...storeOf(store),
        precheck: async (ref, purchases) => {
          const isBad = purchases.some(({ userId }) => userId === 'u2');
          if (isBad) throw new OperationalError('redis', 'precheck: the script failed', { retryable: false });
          return store.precheck(ref, purchases);
        },
      };
      expect((await place('u1', 'u2', 'u3')).answers).to.deep.equal(['accepted', 'refused_by_store', 'accepted']);
      expect(sizes()).to.deep.equal([1, 1]);
    });

    it('stop in the half that meets another fault, without affecting the other half', async () => {
      await openSale({ stock: 9 });
      store.poisoned.add('u4/k1');
      inTheRollback = () => {
        broker.breakNext('half_unavailable');
        inTheRollback = () => undefined;
      };
      const { answers } = await place('u1', 'u2', 'u3', 'u4');
      expect(answers).to.deep.equal(['unavailable', 'unavailable', 'accepted', 'refused_by_store']);
      expect([broker.openHalves, bucket().unitsLeft]).to.deep.equal([[], 8]);
    });

    it('throw a fault after the other half if the precheck of a half fails [R8]', async () => {
      await openSale({ stock: 9 });
      store.poisoned.add('u4/k1');
      inTheRollback = () => {
        store.breakNext('precheck_fails');
        inTheRollback = () => undefined;
      };
      const failed = await place('u1', 'u2', 'u3', 'u4').catch((error: unknown) => error);
      expect(failed).to.include({ name: 'OperationalError', retryable: true });
      expect(events.filter((event) => event.includes('@'))).to.deep.equal(['accepted@2', 'refused_by_store@3']);
    });

    it('are `outcome_unknown` until their rollback is confirmed, and a retry gets the result [T5]', async () => {
      await openSale({ stock: 9 });
      store.poisoned.add('u2/k1');
      broker.breakNext('rollback_lost');
      expect((await place('u1', 'u2')).answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      await letTheBrokerAsk();
      expect([broker.openHalves, committed()]).to.deep.equal([[], []]);
      expect((await place('u1', 'u2')).answers).to.deep.equal(['accepted', 'refused_by_store']);
    });

    it('are accepted if the marker is `deducted`, although the script failed afterwards [T8]', async () => {
      await openSale({ stock: 9 });
      stock = {
        ...storeOf(store),
        deduct: async (batch) => {
          await store.deduct(batch);
          return { outcome: 'errored', error: new OperationalError('redis', 'it failed', { retryable: false }) };
        },
      };
      expect((await place('u1', 'u2')).answers).to.deep.equal(['accepted', 'accepted']);
      expect(committed()).to.have.length(1);
    });
  });

  describe('a refused deduct', () => {
    const anotherBatchTakes = (...texts: string[]): void => {
      inTheGap = () => store.deduct(batchOf(sale, purchasesOf(...texts)));
    };

    it('answers the refused purchases after the rollback, and places the others again [G1, G2]', async () => {
      await openSale({ stock: 6, limitPerBuyer: 2 });
      anotherBatchTakes('u1/other*2', 'u9');
      const placed = await place('u1', 'u2*2', 'u3');
      expect(placed).to.deep.include({ verdict: 'refused', again: [1, 2] });
      expect(placed.answers).to.deep.equal(['limit_reached', undefined, undefined]);
      expect(events).to.deep.equal(['rollback', 'limit_reached@0', 'again@1', 'again@2']);
      expect([broker.openHalves, committed()]).to.deep.equal([[], []]);
    });

    it("keeps the caller's indexes, even if precheck has answered some purchases", async () => {
      await openSale({ stock: 4 });
      anotherBatchTakes('u9', 'u8');
      const placed = await place('u1*9', 'u2', 'u3*2', 'u4');
      expect(placed.answers).to.deep.equal(['limit_reached', undefined, 'not_enough_left', undefined]);
      expect(placed.again).to.deep.equal([1, 3]);
    });

    it('returns `replayed` for a survivor whose own retry was accepted first', async () => {
      await openSale();
      anotherBatchTakes('u1');
      expect((await place('u1', 'u2')).answers).to.deep.equal(['replayed', undefined]);
    });

    it('answers `outcome_unknown`, not a refusal, until the rollback is confirmed [T5]', async () => {
      await openSale({ stock: 1 });
      anotherBatchTakes('u9');
      broker.breakNext('rollback_lost');
      const placed = await place('u1', 'u2*2');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'not_enough_left']); // u2 never was in the half message
      await letTheBrokerAsk();
      expect([broker.openHalves, committed()]).to.deep.equal([[], []]);
      inTheGap = () => undefined;
      expect((await place('u1')).answers).to.deep.equal(['sold_out']);
    });

    it('places no other purchase again without a confirmed rollback [T5]', async () => {
      await openSale({ stock: 3 });
      anotherBatchTakes('u9');
      broker.breakNext('rollback_lost');
      const placed = await place('u1', 'u2*2');
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      expect(placed.again).to.deep.equal([]);
    });

    it('rolls back and places all purchases again if a check-back aborted the batch first [T7]', async () => {
      await openSale();
      inTheGap = (batch) => store.resolve(batch);
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'aborted', again: [0, 1] });
      expect(events).to.deep.equal(['rollback', 'again@0', 'again@1']);
      expect(bucket().unitsLeft).to.equal(10);
    });

    for (const [word, change] of [
      ['stale_epoch', (own: MemoryBucket) => own.sale && (own.sale.epoch = 2)],
      ['stale_epoch', (own: MemoryBucket) => own.sale && (own.sale.state = 'repair')],
      ['stale_epoch', () => store.restart()],
      ['not_warmed', (own: MemoryBucket) => (own.sale = null)],
    ] as const) {
      it(`(${word}) answers outcome_unknown and rolls back if the sale may have lost data [R10]`, async () => {
        await openSale();
        inTheGap = () => change(bucket());
        const placed = await place('u1', 'u2');
        // A check-back may have committed the batch, so a confirmed rollback proves nothing.
        expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
        expect(events).to.deep.equal(['outcome_unknown@0', 'outcome_unknown@1', 'rollback']);
      });
    }

    it('does not return a refusal that Redis lost before the confirmed rollback [R2, R4]', async () => {
      for (const refuse of [() => anotherBatchTakes('u1/other'), () => (inTheGap = (batch) => store.resolve(batch))]) {
        await openSale({ limitPerBuyer: 1 });
        refuse();
        // Redis lost the marker, the sale was rebuilt, and a check-back committed the batch.
        inTheRollback = ({ batchId }) => {
          expect(bucket().markers.get(batchId)?.kind).to.equal('aborted');
          bucket().markers.set(batchId, { kind: 'claimed', body: null });
        };
        const placed = await place('u1', 'u2');
        expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
        expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      }
    });

    it('(`aborted`) places nothing again without a confirmed rollback [T5]', async () => {
      await openSale();
      inTheGap = (batch) => store.resolve(batch);
      broker.breakNext('rollback_lost');
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
    });

    it('(claimed) answers `outcome_unknown` and commits, because orders will follow', async () => {
      await openSale();
      inTheGap = ({ batchId }) => bucket().markers.set(batchId, { kind: 'claimed', body: null });
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      expect(committed()).to.have.length(1);
    });

    it('(unreplicated) commits but answers no 202, because a fail-over could undo the deduct', async () => {
      await openSale();
      sinon.stub(store, 'deduct').resolves({ outcome: 'unreplicated' });
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      expect(committed()).to.have.length(1);
    });
  });

  describe('a lost reply of deduct', () => {
    it('returns accepted after one deduct if the marker is `deducted` [T8]', async () => {
      await openSale({ stock: 2 });
      store.breakNext('deduct_reply_lost');
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'accepted', again: [] });
      expect(placed.answers).to.deep.equal(['accepted', 'accepted']);
      expect([store.calls.deduct, store.calls.resolve]).to.deep.equal([1, 1]);
      expect(committed()).to.have.length(1);
      expect(bucket().unitsLeft).to.equal(0);
    });

    it('places all purchases again after the rollback if the marker is `aborted` [G4]', async () => {
      await openSale({ stock: 2 });
      store.breakNext('deduct_reply_lost');
      inTheGap = () => (bucket().unitsLeft = 1); // another purchase was faster
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'aborted', again: [0, 1] });
      expect(events).to.deep.equal(['rollback', 'again@0', 'again@1']);
      expect(await store.deduct(sent[0] as Batch)).to.deep.equal({ outcome: 'aborted' });
      expect(bucket().unitsLeft).to.equal(1);
    });

    it('aborts a deduct that never arrived, and lets a late copy take nothing [G4]', async () => {
      await openSale();
      store.breakNext('deduct_lost');
      const placed = await place('u1');
      expect(placed).to.deep.include({ verdict: 'aborted', again: [0] });
      expect(await store.deduct(sent[0] as Batch)).to.deep.equal({ outcome: 'aborted' });
      expect(bucket().unitsLeft).to.equal(10);
    });

    it('reads the marker up to three times, with pauses so that Redis can reconnect', async () => {
      await openSale();
      store.breakNext('deduct_reply_lost', 'resolve_lost', 'resolve_reply_lost');
      const startedMs = clock.nowMs();
      expect((await place('u1')).answers).to.deep.equal(['accepted']);
      expect(clock.nowMs() - startedMs).to.equal(500);
      expect(store.calls.resolve, 'one of three calls was lost').to.equal(2);
    });

    it('stays unknown until the check-back if the marker cannot be read [T9]', async () => {
      await openSale();
      store.breakNext('deduct_reply_lost', 'resolve_lost', 'resolve_lost', 'resolve_lost');
      const placed = await place('u1', 'u2');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown', 'outcome_unknown']);
      expect(events).to.deep.equal(['outcome_unknown@0', 'outcome_unknown@1']);
      expect(broker.openHalves).to.have.length(1);
      await letTheBrokerAsk();
      expect(committed()).to.have.length(1);
      expect((await place('u1')).answers, 'the same key learns the outcome').to.deep.equal(['replayed']);
    });

    it('stays unknown if the sale went into repair and the marker gives no answer [R10]', async () => {
      await openSale();
      store.breakNext('deduct_lost');
      inTheGap = () => bucket().sale && (bucket().sale!.state = 'repair');
      const placed = await place('u1');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(events).to.deep.equal(['outcome_unknown@0']);
      expect(store.calls.resolve).to.equal(1);
    });

    it('(outlived) stays unknown until the check-back commits if the sale was rebuilt [R4]', async () => {
      await openSale();
      store.breakNext('deduct_lost');
      inTheGap = () => bucket().sale && (bucket().sale!.epoch = 2);
      const placed = await place('u1');
      expect(placed).to.deep.include({ verdict: 'outcome_unknown', again: [] });
      expect(placed.answers).to.deep.equal(['outcome_unknown']);
      expect(events, 'neither commit nor rollback').to.deep.equal(['outcome_unknown@0']);
      expect(store.calls.resolve).to.equal(1);
      await letTheBrokerAsk();
      expect(committed()).to.have.length(1);
    });

    it('(claimed) stays unknown and commits if a later epoch took it over', async () => {
      await openSale();
      store.breakNext('deduct_lost');
      inTheGap = ({ batchId }) => bucket().markers.set(batchId, { kind: 'claimed', body: null });
      expect((await place('u1')).answers).to.deep.equal(['outcome_unknown']);
      expect(committed()).to.have.length(1);
    });
  });
});

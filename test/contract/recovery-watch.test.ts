import { expect } from 'chai';
import { openSale } from '../chaos/harness/sales.js';
import { cancelPlanted, plantOrder } from '../chaos/harness/sale-state.js';
import { holdBatch, type RecordedBatch } from '../chaos/harness/batches.js';
import { RecoveryWatch } from '../chaos/harness/recovery-watch.js';
import { pause, until } from '../chaos/harness/wait.js';
import { bucketKeys } from '../../src/redis/keys.js';
import type { Sale } from '../../src/core/sale.js';
import { openTestStack, type TestStack } from '../helpers/stack.js';

/** Several polls of the watch. */
const POLLS_MS = 1_000;
const PAYMENT_WINDOW_MS = 900_000;

describe('contract RecoveryWatch: recovery of a sale', () => {
  let stack: TestStack;
  let watch: RecoveryWatch;
  before(async () => {
    stack = await openTestStack();
  });
  afterEach(() => watch.stop());
  after(() => stack?.close());

  const keysOf = ({ userIds }: RecordedBatch): Set<string> => new Set(userIds.map((userId) => `${userId}/k1`));
  const watchFor = (sale: Sale, accepted: ReadonlySet<string> = new Set()): void => {
    watch = new RecoveryWatch(stack, [{ sale, accepted }]);
  };
  const hasNotYet = async (why: string): Promise<void> => {
    await pause(POLLS_MS);
    expect(watch.recoveryMs, why).to.equal(null);
  };
  const recovers = (): Promise<unknown> => until('the sale has recovered', () => watch.recoveryMs !== null);

  it('is not reported while a batch from before the end of the fault is pending, even with its rows', async () => {
    const sale = await openSale(stack);
    const held = await holdBatch(stack, sale.saleId, 2);
    watchFor(sale, keysOf(held));
    await hasNotYet('deducted, not recorded');
    await held.record(PAYMENT_WINDOW_MS);
    await hasNotYet('recorded, not marked recorded');
    await held.markRecorded();
    await recovers();
    expect(watch.recoveryMs).to.be.within(2 * POLLS_MS, 2 * POLLS_MS + 60_000);
  });

  it('is not reported while the sale is locked or missing', async () => {
    const sale = await openSale(stack);
    const { redis } = stack.redis;
    const key = bucketKeys({ saleId: sale.saleId, bucket: 0 }).sale;
    await redis.hset(key, 'state', 'repair');
    watchFor(sale);
    await hasNotYet('in repair');
    await redis.rename(key, `${key}:away`);
    await hasNotYet('missing');
    await redis.rename(`${key}:away`, key);
    await redis.hset(key, 'state', 'open');
    await recovers();
  });

  it('is not reported until every accepted purchase has its row', async () => {
    const sale = await openSale(stack);
    const recorded = await holdBatch(stack, sale.saleId, 1);
    await recorded.record(PAYMENT_WINDOW_MS);
    await recorded.markRecorded();
    watchFor(sale, new Set([...keysOf(recorded), 'unknown/k1']));
    await hasNotYet('one purchase has no row');
    watch.stop();
    watchFor(sale, keysOf(recorded));
    await recovers();
  });

  it('is not reported while a unit is neither sold nor for sale', async () => {
    const sale = await openSale(stack);
    await plantOrder(stack, sale.saleId, 'eve');
    watchFor(sale);
    await hasNotYet('MySQL sold what Redis still has');
    await cancelPlanted(stack, sale.saleId);
    await recovers();
  });

  it('covers the given sales, and fails when they take too long', async () => {
    const [open, locked] = [await openSale(stack), await openSale(stack)];
    const key = bucketKeys({ saleId: locked.saleId, bucket: 0 }).sale;
    await stack.redis.redis.hset(key, 'state', 'repair');
    watch = new RecoveryWatch(
      stack,
      [open, locked].map((sale) => ({ sale, accepted: new Set<string>() })),
    );
    await watch.within(30_000, [open.saleId]);
    expect(watch.recoveryMs, 'of both').to.equal(null);
    const late = await watch.within(POLLS_MS).catch((error: Error) => error.message);
    expect(late).to.match(/not every sale has recovered/);
    await stack.redis.redis.hset(key, 'state', 'open');
    await recovers();
    const slow = await watch.within(1).catch((error: Error) => error.message);
    expect(slow).to.match(/until recovery: expected at most 1/);
  });

  it('does not depend on purchases after the end of the fault', async () => {
    const sale = await openSale(stack);
    watchFor(sale);
    await until('the end of the fault is past', () => Date.now() > watch.endedMs + 5);
    const newer = await holdBatch(stack, sale.saleId, 1);
    await recovers();
    await newer.record(PAYMENT_WINDOW_MS);
    await newer.markRecorded();
  });
});

import { expect } from 'chai';
import { expectInvariants } from '../helpers/invariants.js';
import { useSystem } from '../helpers/system.js';
import { expectAllBack, soldToUnpaid, statesOf } from '../helpers/unpaid-orders.js';
import { until } from '../helpers/until.js';

const ORDERS = 10_000;
const BACK_WITHIN_MS = 30_000;
/** All are due when the keeper starts, so that it has them in its hands when it dies. */
const WINDOW_MS = 1;

describe('a keeper that is killed', () => {
  const system = useSystem();

  it(`C3 in the middle of expiring ${ORDERS} orders: the next one goes on, each order ends and is released once`, async () => {
    const { stack, programs } = system;
    const { saleId } = await soldToUnpaid(stack, { count: ORDERS, paymentWindowMs: WINDOW_MS });
    const expired = async (): Promise<number> => (await statesOf(stack, saleId)).expired ?? 0;
    const undone = (): Promise<number> => stack.audit.book.undoneReleases(saleId);

    // no worker runs here: what is published again would wait for the next test
    const env = { KEEPER_EVERY_MS: '50', EXPIRE_SWEEP_EVERY_MS: '50', REDRIVE_AFTER_MS: '3600000' };
    const startedMs = Date.now();
    const keeper = programs.start('keeper', { env });
    keeper.catch(() => undefined); // it is killed, perhaps before it says that it is ready
    await until('some orders have ended', async () => (await expired()) > 0, 60_000, 5);
    for (const program of programs.running) await program.crash();
    await keeper.catch(() => undefined);
    const [ended, promised] = [await expired(), await undone()];
    expect(ended, 'some').to.be.at.least(1);
    expect(ended < ORDERS || promised > 0, 'the fault happened: work was left').to.equal(true);

    const restartedMs = Date.now();
    await programs.start('keeper', { env });
    await until('every order has ended', async () => (await expired()) === ORDERS, BACK_WITHIN_MS);
    const figures = await expectInvariants(stack, saleId);
    const tookMs = Date.now() - restartedMs;
    const seconds = (tookMs / 1000).toFixed(1);
    console.log(
      `      killed after ${ended} orders (${restartedMs - startedMs} ms), all units back ${seconds} s later`,
    );
    expect(figures).to.include({ sold: 0, liveRows: 0, unitsLeft: ORDERS, rows: ORDERS });
    expect(tookMs).to.be.lessThan(BACK_WITHIN_MS);
    await expectAllBack(stack, saleId, ORDERS);
  });
});

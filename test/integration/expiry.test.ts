import { expect } from 'chai';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { expectAllBack, soldToUnpaid } from '../chaos/harness/batches.js';
import { statesOf } from '../chaos/harness/sale-state.js';
import { grantedMsOf, until } from '../chaos/harness/wait.js';

const ORDERS = 10_000;
/** Long enough to sell all of them on a busy machine. */
const WINDOW_MS = 15_000;
/** What is promised: every unit is back this long after the deadline. */
const BACK_WITHIN_MS = 30_000;

describe('unpaid orders', () => {
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    keeper = await programs.start('keeper');
  });

  it(`${ORDERS} orders end at their deadline and all units are for sale again within 30 s of it [C3]`, async () => {
    const { stack } = system;
    const { sale, dueMs } = await soldToUnpaid(stack, { count: ORDERS, paymentWindowMs: WINDOW_MS });
    const { saleId } = sale;
    expect(await stack.audit.repository.findSale(saleId)).to.include({ sold: ORDERS });

    const expired = async (): Promise<boolean> => (await statesOf(stack, saleId)).expired === ORDERS;
    await until('they are due', () => Date.now() >= dueMs);
    const tookMs = await grantedMsOf(() => until('every order has ended', expired));
    const figures = await expectInvariants(stack, saleId);
    console.log(`      ${ORDERS} orders expired, all units back ${(tookMs / 1000).toFixed(1)} s after the deadline`);

    expect(figures).to.include({ sold: 0, liveRows: 0, unitsLeft: ORDERS, rows: ORDERS });
    expect(tookMs).to.be.lessThan(BACK_WITHIN_MS);
    await expectAllBack(stack, saleId, ORDERS);
    await until('the keeper says so', async () => {
      const { text } = await ask(`${keeper.operatorsUrl}/metrics`);
      const metric = (name: string, label = ''): number =>
        Number(new RegExp(`^${name}\\{${label}[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
      const overdue = metric('seckill_overdue', 'state="pending_payment"');
      return metric('seckill_expired_orders_total') >= ORDERS && overdue === 0;
    });
  });
});

import { expect } from 'chai';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import type { Program } from '../chaos/harness/programs.js';
import { expectPromise } from '../helpers/promised-time.js';
import { useSystem } from '../helpers/system.js';
import { expectAllBack, soldToUnpaid } from '../chaos/harness/batches.js';
import { userIds } from '../chaos/harness/buyers.js';
import { statesOf } from '../chaos/harness/sale-state.js';
import { until } from '../chaos/harness/wait.js';

const ORDERS = 10_000;
const BACK_WITHIN_MS = 30_000;

describe('unpaid orders', () => {
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    keeper = await programs.start('keeper');
  });

  it(`end at their deadline, and all units of ${ORDERS} orders are for sale again within 30 s [C3]`, async function () {
    const { stack } = system;
    await expectPromise(this, BACK_WITHIN_MS, async () => {
      const { sale } = await soldToUnpaid(stack, userIds(ORDERS), 900_000);
      const { saleId } = sale;
      expect(await stack.audit.repository.findSale(saleId)).to.include({ sold: ORDERS });
      await stack.mysql.execute('UPDATE orders SET expires_at = UTC_TIMESTAMP(3) WHERE sale_id = ?', [saleId]);
      const dueMs = performance.now();
      await until('every order has ended', async () => (await statesOf(stack, saleId)).expired === ORDERS);
      const figures = await expectInvariants(stack, saleId);
      const tookMs = performance.now() - dueMs;
      expect(figures).to.include({ sold: 0, liveRows: 0, unitsLeft: ORDERS, rows: ORDERS });
      await expectAllBack(stack, saleId, ORDERS);
      return tookMs;
    });
    await until('the keeper says so', async () => {
      const { text } = await ask(`${keeper.operatorsUrl}/metrics`);
      const metric = (name: string, label = ''): number =>
        Number(new RegExp(`^${name}\\{${label}[^}]*\\} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
      const overdue = metric('seckill_overdue', 'state="pending_payment"');
      return metric('seckill_expired_orders_total') >= ORDERS && overdue === 0;
    });
  });
});

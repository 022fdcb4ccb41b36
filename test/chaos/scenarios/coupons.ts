import { setTimeout as sleep } from 'node:timers/promises';
import { COUPON_REFUSALS } from '../../../src/core/coupon.js';
import { brokenBooks } from '../../helpers/coupon-books.js';
import { inLanes } from '../../helpers/lanes.js';
import { PaymentServiceStandIn, SERVICE_KEY } from '../../helpers/payment-service-stand-in.js';
import { soldToUnpaid } from '../harness/batches.js';
import { finalAnswer, userIds, type Buyers } from '../harness/buyers.js';
import { expectEqual } from '../harness/expect.js';
import { NO_REDRIVE, type Program } from '../harness/programs.js';
import { found } from '../harness/wait.js';
import type { Random } from '../random.js';
import type { Scenario } from '../scenario.js';

// P4: apis are killed while they take payments, and two orders want each coupon.

/** `npm run chaos -- run P4 --coupons 10000` sets another number. */
const COUPONS = Number(process.env.COUPONS ?? 200);
const LANES = Math.ceil(Math.min(32, COUPONS / 25));
const WINDOW_MS = 3_600_000;
const PROGRESS_EVERY_MS = 15_000;
/** The first charges of an order use any card, and the others a card that pays. */
const CARDS = ['good', 'declined', 'lost'];
const ANY_CARD_TRIES = 3;

/** Pays until the order is paid or has ended, or the coupon is used. @returns whether the order is paid */
async function pay(random: Random, buyers: Buyers, user: string, orderId: string, coupon?: string): Promise<boolean> {
  for (let tries = 0; ; tries++) {
    const paymentMethod = tries < ANY_CARD_TRIES ? random.pick(CARDS) : 'good';
    const charge = { key: `${paymentMethod}-${tries}`, paymentMethod, coupon };
    const answer = await finalAnswer(() => buyers.move('pay', user, orderId, charge));
    if (answer?.status === 200) return true;
    const { code, detail } = answer?.json ?? {};
    if (code === 'wrong_state' || code === 'refund_due' || detail === COUPON_REFUSALS.redeemed) return false;
    if (detail === COUPON_REFUSALS.in_use) await sleep(50);
    else expectEqual(code, 'payment_declined', `the payment of ${orderId}`);
  }
}

const RACE: Scenario = {
  name: 'P4',
  title: 'apis are killed while two orders want each coupon: it pays one of them, and money is taken and recorded once',
  fast: true,
  alone: true, // a keeper of another scenario would ask another provider about these charges
  timeoutMs: 180_000 + COUPONS * 150,
  async run(context) {
    const { stack, random, seed } = context;
    const service = new PaymentServiceStandIn(() => random.whole(20, 150));
    const url = `${await service.start()}/pay`;
    context.atEnd(() => service.stop());
    const pays = { PAYMENT_PROVIDER: 'http', PAYMENT_API_URL: url, PAYMENT_API_KEY: SERVICE_KEY };
    const startApi = (): Promise<Program> => context.start('api', { env: pays });
    const apis = [await startApi(), await startApi()];
    await context.start('keeper', { env: { ...NO_REDRIVE, ...pays, KEEPER_EVERY_MS: '200', OUTBOX_EVERY_MS: '100' } });
    const sales: string[] = [];
    for (const coupon of ['300 30d', null, null]) {
      const { sale } = await soldToUnpaid(stack, userIds(COUPONS, `${seed}-`), WINDOW_MS, { coupon });
      context.addSale(sale);
      sales.push(sale.saleId);
    }
    const [bringing, first, second] = sales.map((id) => context.buyers(id, () => apis)) as [Buyers, Buyers, Buyers];
    const ofUsers = `SELECT user_id AS user, GROUP_CONCAT(id ORDER BY sale_id) AS ids
      FROM orders WHERE sale_id IN (?) GROUP BY user_id`;
    const orders = await stack.mysql.query<{ user: string; ids: string }>(ofUsers, [sales]);

    let [kills, steps, isOver] = [0, 0, false];
    const progress = setInterval(() => {
      service.asked.length = 0; // a large race would fill the memory
      console.log(`  ${kills} kills; ${steps} of ${2 * COUPONS} steps: a buyer gets a coupon, and uses it`);
    }, PROGRESS_EVERY_MS);
    context.atEnd(() => clearInterval(progress));
    const kill = async (): Promise<void> => {
      for (; !isOver; kills++) {
        await sleep(random.whole(200, 1500));
        const [victim] = apis.splice(random.whole(0, 1), 1);
        await victim?.crash();
        apis.push(await startApi());
      }
    };
    const race = async (): Promise<void> => {
      await inLanes(LANES, orders, async ({ user, ids }) => {
        const [orderId = ''] = ids.split(',');
        expectEqual(await pay(random, bringing, user, orderId), true, `${orderId} is paid`);
        steps++;
      });
      const readCodes = async (): Promise<ReadonlyMap<string, string> | null> => {
        const sql = 'SELECT code, user_id AS user FROM coupon_codes WHERE sale_id = ?';
        const rows = await stack.mysql.query<{ code: string; user: string }>(sql, sales.slice(0, 1));
        return rows.length < COUPONS ? null : new Map(rows.map(({ code, user }) => [user, code]));
      };
      const codes = await found('each paid order has brought a coupon', readCodes, { everyMs: 500 });
      await inLanes(LANES, orders, async ({ user, ids }) => {
        const [[, one = '', other = ''], code] = [ids.split(','), codes.get(user)];
        const cancel = () => finalAnswer(() => second.move('cancel', user, other));
        const [isFirst, isSecond] = await Promise.all([
          pay(random, first, user, one, code),
          pay(random, second, user, other, code),
          random.chance(0.2) && sleep(random.whole(0, 200)).then(cancel),
        ]);
        expectEqual([isFirst, isSecond].filter(Boolean).length, 1, `orders that coupon ${code} paid`);
        steps++;
      });
    };
    await Promise.all([race().finally(() => (isOver = true)), kill()]);
    const broken = [bringing, first, second].reduce((sum, { opLog }) => sum + opLog.movesBroken, 0);
    await context.observed(`${kills} apis killed, ${broken} requests without an answer`, () => kills > 1 && broken > 0);
    context.faultEnded();

    await context.until('no charge is open and no refund is due', async () => {
      const open = await stack.mysql.query(
        `SELECT 1 FROM payment_attempts WHERE state = 'open' AND sale_id IN (?) UNION ALL
         SELECT 1 FROM refunds AS r JOIN orders AS o ON o.id = r.order_id WHERE r.state = 'due' AND o.sale_id IN (?)`,
        [sales, sales],
      );
      return open.length === 0;
    });
    const isOurs = `o.sale_id IN (${sales.join()})`;
    expectEqual(await brokenBooks(stack.mysql, isOurs), [], 'rows that break the books');
    const [books] = await stack.mysql.query<{ used: string; cents: string }>(
      `SELECT COUNT(c.code) AS used, SUM(IF(o.state = 'paid', o.amount_cents, 0)) AS cents
         FROM orders AS o LEFT JOIN coupon_codes AS c ON c.used_order = o.id AND c.state = 'redeemed' WHERE ${isOurs}`,
    );
    expectEqual(Number(books?.used), COUPONS, 'coupons that are used');
    const charged = [...service.charges.values()].reduce((sum, { amountCents = 0 }) => sum + Number(amountCents), 0);
    const back = [...service.refunds.values()].reduce((sum, cents) => sum + cents, 0);
    expectEqual(charged - back, Number(books?.cents), 'cents that the service took and kept');
    await context.observed(`${COUPONS} coupons used, ${charged} cents taken, ${back} given back`, () => true);
  },
};

export const COUPONS_SCENARIOS: readonly Scenario[] = [RACE];

import { expect } from 'chai';
import type { Order } from '../../src/core/order.js';
import { OperationalError } from '../../src/core/errors.js';
import type { OrderRefunds } from '../../src/core/ports/order-refunds.js';
import type { PaymentProvider } from '../../src/core/ports/payment-provider.js';
import { createOrderRefunds } from '../../src/mysql/order-refunds.js';
import { payOrderRefunds } from '../../src/orders/pay-refunds.js';
import { openHttpProvider } from '../../src/payment/http-provider.js';
import { pause } from '../chaos/harness/wait.js';
import { partial } from '../helpers/partial.js';
import { PaymentServiceStandIn, SERVICE_KEY } from '../helpers/payment-service-stand-in.js';
import { silentLog } from '../helpers/silent-log.js';
import { mysqlMoves, ordersIn, paymentOf } from './order-transitions-worlds.js';
import { useWorld } from './on-each-world.js';
import { systemClock } from './repository-worlds.js';

const ORDERS = 1000;
/** Short, so that refunds of a dead keeper are soon due again. */
const LEASE_MS = 1500;

describe('contract: bulk refunds on MySQL', () => {
  const world = useWorld(mysqlMoves);
  const service = new PaymentServiceStandIn();
  afterEach(() => service.stop());

  it('makes each of 1,000 refunds once when a keeper and the provider die halfway', async () => {
    const users = Array.from({ length: ORDERS }, (_, index) => `u${index}/k*${1 + (index % 3)}`);
    const { sale, orders } = await ordersIn(world, users, { sale: { stock: 3 * ORDERS, priceCents: 100 } });
    const pay = async (order: Order): Promise<void> => {
      const payment = paymentOf(order);
      service.charges.set(order.orderId, { status: 'succeeded', paymentId: payment.paymentId });
      await world.transitions.pay(order.orderId, payment);
    };
    await Promise.all(orders.map(pay));
    await world.pool.execute("UPDATE sales SET state = 'paused' WHERE id = ?", [sale.saleId]);

    const refunds = createOrderRefunds(world.pool, { clock: systemClock });
    const wish = { unpaid: true, refundAll: true, dryRun: false, reason: 'wrong price' };
    for (let after: string | null = null; ;) {
      const step = await refunds.voidNext(sale.saleId, after, wish, 'ann');
      if (step.outcome !== 'done') throw new Error(step.outcome);
      if (step.next === null) break;
      after = step.next;
    }

    let provider = await open(service);
    const current: Pick<PaymentProvider, 'refund'> = { refund: (...asked) => provider.refund(...asked) };
    const done = (): number => service.refunds.size;

    // A keeper dies between the answer of the provider and the row.
    const dies = keeper({ ...refunds, settle: async (id) => (done() < 300 ? refunds.settle(id) : dead()) }, current);
    for (let isAlive = true; isAlive;)
      isAlive = await dies.runOnce().then(
        () => true,
        () => false,
      );
    expect(done()).to.be.within(300, ORDERS - 1);

    // Two keepers continue, and the provider dies while answers are on their way.
    const keepers = [keeper(refunds, current), keeper(refunds, current)];
    let restarts = 0;
    while (await isDue()) {
      const work = Promise.all(keepers.map((one) => one.runOnce()));
      if (restarts === 0 && done() > 600) {
        restarts++;
        await service.stop();
        await work;
        provider = await open(service);
      }
      await work;
      await pause(20);
    }
    expect(restarts).to.equal(1);

    const amounts = orders.reduce((sum, { amountCents }) => sum + amountCents, 0);
    expect(done(), 'refunds at the provider').to.equal(ORDERS);
    expect([...service.refunds.values()].reduce((sum, cents) => sum + cents, 0)).to.equal(amounts);
    expect(await one('SELECT CAST(SUM(refunded_cents) AS CHAR) AS n FROM orders')).to.equal(String(amounts));
    const states = "SELECT CAST(COUNT(*) AS CHAR) AS n FROM orders WHERE state = 'paid' AND after_paid = 'refunded'";
    expect(await one(states)).to.equal(String(ORDERS));
    const moved = (await world.moved()).filter(({ move }) => move === 'refunded').flatMap(({ orders: ids }) => ids);
    expect([moved.length, new Set(moved).size]).to.deep.equal([ORDERS, ORDERS]);
    expect(await world.violations(sale.saleId)).to.deep.equal([]);
  });

  async function open(on: PaymentServiceStandIn): Promise<PaymentProvider> {
    const apiUrl = `${await on.start()}/pay`;
    return (await openHttpProvider({ apiKey: SERVICE_KEY, apiUrl }, silentLog)).provider;
  }

  const dead = (): Promise<never> =>
    Promise.reject(new OperationalError('mysql', 'the keeper is dead', { retryable: true }));

  const keeper = (refunds: OrderRefunds, provider: Pick<PaymentProvider, 'refund'>) =>
    payOrderRefunds(
      {
        refunds,
        provider: partial(provider),
        cases: world.cases,
        log: silentLog,
        metrics: partial({ refundTried: () => undefined }),
      },
      { max: 16, leaseMs: LEASE_MS },
    );

  async function one(sql: string): Promise<string | undefined> {
    return (await world.pool.query<{ readonly n: string }>(sql))[0]?.n;
  }
  const isDue = async (): Promise<boolean> =>
    (await one("SELECT CAST(COUNT(*) AS CHAR) AS n FROM order_refunds WHERE state = 'due'")) !== '0';
});

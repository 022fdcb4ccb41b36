import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { payRefunds } from '../../../src/orders/pay-refunds.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type { PaymentProvider } from '../../../src/core/ports/payment-provider.js';
import { MemoryPaymentCases } from '../../helpers/memory/memory-payment-cases.js';
import { MemoryRefundRepository } from '../../helpers/memory/memory-refund-repository.js';
import { KeeperWorld } from './keeper-world.js';
import { partial } from '../../helpers/partial.js';

const LEASE_MS = 60_000;

describe('keeper: pay-refunds', () => {
  let world: KeeperWorld;
  let refunds: MemoryRefundRepository;
  let cases: MemoryPaymentCases;
  /** Calls that the provider received. */
  let asked: string[];
  beforeEach(() => {
    world = new KeeperWorld();
    refunds = new MemoryRefundRepository(world.transitions, world.clock);
    cases = new MemoryPaymentCases(world.transitions, world.clock);
    asked = [];
  });

  const simulator = createPaymentSimulator();
  const refund: PaymentProvider['refund'] = (paymentId, amountCents, key) => {
    asked.push(`${paymentId} ${amountCents} ${key}`);
    return simulator.refund(paymentId, amountCents, key);
  };
  const run = (repository: MemoryRefundRepository = refunds, max = 16): Promise<unknown> =>
    payRefunds(
      { refunds: repository, cases, provider: partial({ refund }), ...world },
      { max, leaseMs: LEASE_MS },
    ).runOnce();

  /** Ends orders before their payments arrive. */
  async function owe(...paymentIds: string[]): Promise<void> {
    const sale = await world.openSale({ stock: 1000 });
    const batch = await world.deducted(
      sale,
      paymentIds.map((_, index) => `u${index}`),
    );
    for (const [index, orderId] of (await world.recorded(batch)).entries()) {
      await world.transitions.cancel(orderId);
      await world.transitions.pay(orderId, { paymentId: paymentIds[index] as string, amountCents: 1999 });
    }
  }

  it('refunds each payment once, keyed by the payment', async () => {
    await owe('simulated-1', 'simulated-2');
    await run();
    await run();
    expect(asked).to.deep.equal(['simulated-1 1999 simulated-1', 'simulated-2 1999 simulated-2']);
    expect([refunds.tries('simulated-1').state, refunds.tries('simulated-2').state]).to.deep.equal([
      'refunded',
      'refunded',
    ]);
    expect(world.refundTries).to.deep.equal(['refunded', 'refunded']);
  });

  it('retries with the same key and growing pauses if the provider does not answer', async () => {
    await owe('simulated-unknown-1');
    const pauses: number[] = [];
    for (let tries = 1; tries <= 12; tries++) {
      await run();
      const { attempts, availableAtMs, lastError } = refunds.tries('simulated-unknown-1');
      expect([attempts, lastError]).to.deep.equal([tries, 'no answer from the provider']);
      pauses.push((availableAtMs - world.clock.nowMs()) / 1000);
      await run();
      expect(asked, 'not before it is due').to.have.length(tries);
      world.clock.advance(availableAtMs - world.clock.nowMs());
    }
    expect(pauses).to.deep.equal([2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]);
    expect(new Set(asked)).to.have.all.keys('simulated-unknown-1 1999 simulated-unknown-1');
  });

  it('keeps a refused refund due, logs it for an operator and delays no other refund', async () => {
    await owe('simulated-decline-1', 'simulated-2');
    await run();
    expect(refunds.tries('simulated-decline-1')).to.include({ state: 'due', lastError: 'refused: simulated' });
    expect(refunds.tries('simulated-2').state).to.equal('refunded');
    expect(world.errors).to.deep.equal(['a refund was refused; ask the provider']);
  });

  it('keeps real money due, and logs this, if only a simulator is configured', async () => {
    await owe('pi_3Mt');
    await run();
    expect(refunds.tries('pi_3Mt')).to.include({ state: 'due', lastError: 'refused: not a simulated payment' });
    expect(world.errors).to.deep.equal(['a refund was refused; ask the provider']);
  });

  it('opens a case if an operator claimed the refund during the provider call', async () => {
    await owe('simulated-1');
    const mark = refunds.markRefunded.bind(refunds);
    refunds.markRefunded = async (paymentId) => {
      await mark(paymentId);
      return mark(paymentId);
    };
    await run();
    expect(world.errors).to.have.length(1);
    expect(world.errors[0]).to.contain('paid twice');
    expect(cases.rows).to.have.length(1);
    expect(cases.rows[0]).to.include({ kind: 'refunded_twice', paymentId: 'simulated-1', state: 'open' });
  });

  it('repeats the same refund request if the mark is lost [D1]', async () => {
    await owe('simulated-1', 'simulated-2');
    const mark = refunds.markRefunded.bind(refunds);
    refunds.markRefunded = async (paymentId) => {
      if (paymentId === 'simulated-1') throw new OperationalError('mysql', 'gone', { retryable: true });
      return mark(paymentId);
    };
    expect(await run().catch((error: unknown) => error)).to.be.instanceOf(OperationalError);
    refunds.markRefunded = mark;
    await run();
    expect(asked, 'its lease is not over').to.have.length(2);
    world.clock.advance(LEASE_MS);
    await run();
    expect(asked).to.deep.equal([
      'simulated-1 1999 simulated-1',
      'simulated-2 1999 simulated-2',
      'simulated-1 1999 simulated-1',
    ]);
    expect(refunds.tries('simulated-1').state).to.equal('refunded');
  });

  it('works off a backlog in one run', async () => {
    await owe(...Array.from({ length: 10 }, (_, index) => `simulated-${index}`));
    await run(refunds, 3);
    expect(asked).to.have.length(10);
  });
});

import { expect } from 'chai';
import { answersInTime } from '../../../src/payment/answers-in-time.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import { PROVIDER_CALL_MAX_MS, type PaymentProvider } from '../../../src/core/ports/payment-provider.js';
import { payRefunds } from '../../../src/orders/pay-refunds.js';
import { MemoryPaymentCases } from '../../helpers/memory/memory-payment-cases.js';
import { MemoryRefundRepository } from '../../helpers/memory/memory-refund-repository.js';
import { KeeperWorld } from '../orders/keeper-world.js';
import { partial } from '../../helpers/partial.js';

const PRICE = { amountCents: 100, currency: 'EUR' };

describe('payment provider calls with a time limit', () => {
  let logged: unknown[];
  const log = { error: ({ err }: { readonly err?: unknown }) => void logged.push(err) };
  beforeEach(() => {
    logged = [];
  });
  const noAnswer = (): Promise<never> => new Promise(() => undefined);
  /** Creates a clock whose sleepers the test wakes. */
  function handClock(): { sleep(ms: number, signal?: AbortSignal): Promise<void>; pass(): void; waiting: number[] } {
    const wake: (() => void)[] = [];
    const waiting: number[] = [];
    return {
      waiting,
      pass: () => wake.splice(0).forEach((one) => one()),
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          waiting.push(ms);
          wake.push(resolve);
          signal?.addEventListener('abort', () => {
            waiting.pop();
            resolve();
          });
        }),
    };
  }

  it('return unknown after the limit if the provider does not answer, whatever the call', async () => {
    const clock = handClock();
    const provider = answersInTime(
      { needsMethod: false, charge: noAnswer, lookUp: noAnswer, refund: noAnswer },
      { clock: partial(clock), log: partial(log) },
    );
    const answers = Promise.all([
      provider.charge('1', PRICE, 'k'),
      provider.lookUp('1', PRICE, 'k'),
      provider.refund('p', 100, 'p'),
    ]);
    expect(clock.waiting).to.deep.equal([PROVIDER_CALL_MAX_MS, PROVIDER_CALL_MAX_MS, PROVIDER_CALL_MAX_MS]);
    clock.pass();
    expect((await answers).map(({ outcome }) => outcome)).to.deep.equal(['unknown', 'unknown', 'unknown']);
  });

  it('pass an answer on and leave no timer', async () => {
    const clock = handClock();
    const simulator = createPaymentSimulator();
    const provider = answersInTime(simulator, { clock: partial(clock), log: partial(log) });
    expect(await provider.charge('1', PRICE, 'k')).to.deep.equal(await simulator.charge('1', PRICE, 'k'));
    expect(await provider.refund('simulated-decline', 100, 'p')).to.include({ outcome: 'refused' });
    expect(clock.waiting).to.deep.equal([]);
  });

  it('return unknown and log if the provider rejects or throws', async () => {
    const clock = handClock();
    const fault = new Error('a bug of the provider');
    const throwing = (): never => {
      throw fault;
    };
    const rejecting = (): Promise<never> => Promise.reject(fault);
    const provider = answersInTime(
      { needsMethod: false, charge: throwing, lookUp: rejecting, refund: rejecting },
      { clock: partial(clock), log: partial(log) },
    );
    const answers = [
      await provider.charge('1', PRICE, 'k'),
      await provider.lookUp('1', PRICE, 'k'),
      await provider.refund('p', 100, 'p'),
    ];
    expect(answers.map(({ outcome }) => outcome)).to.deep.equal(['unknown', 'unknown', 'unknown']);
    expect(logged).to.deep.equal([fault, fault, fault]);
    expect(clock.waiting).to.deep.equal([]);
  });

  it('let a refund that never ends be tried again, without delaying other refunds', async () => {
    const world = new KeeperWorld();
    const refunds = new MemoryRefundRepository(world.transitions, world.clock);
    const sale = await world.openSale({ stock: 10 });
    for (const [index, orderId] of (await world.recorded(await world.deducted(sale, ['u1', 'u2']))).entries()) {
      await world.transitions.cancel(orderId);
      await world.transitions.pay(orderId, { paymentId: `simulated-${index + 1}`, amountCents: 1999 });
    }
    const simulator = createPaymentSimulator();
    let hangs = true;
    const refund: PaymentProvider['refund'] = (paymentId, cents, key) =>
      hangs && paymentId === 'simulated-1' ? noAnswer() : simulator.refund(paymentId, cents, key);
    const clock = handClock();
    const provider = answersInTime({ ...simulator, refund }, { clock: partial(clock), log: partial(log) });
    const job = payRefunds(
      { refunds, cases: new MemoryPaymentCases(world.transitions, world.clock), provider, ...world },
      { max: 16, leaseMs: 60_000 },
    );

    const run = job.runOnce();
    while (refunds.tries('simulated-2').state === 'due') await new Promise(setImmediate);
    clock.pass();
    await run;
    expect(refunds.tries('simulated-1')).to.include({ state: 'due', lastError: 'no answer from the provider' });

    hangs = false;
    world.clock.advance(2000);
    await job.runOnce();
    expect(refunds.tries('simulated-1').state).to.equal('refunded');
  });
});

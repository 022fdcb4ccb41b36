import { expect } from 'chai';
import { breakerWrappers } from '../../../src/programs/with-breakers.js';
import { OperationalError, type Dependency } from '../../../src/core/errors.js';
import { breakerRules, type BreakerRules } from '../../../src/admission/breaker/breaker-rules.js';
import { REPORT_TIMES, SharedBreakers } from '../../../src/admission/breaker/shared-breakers.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import type { OrderTransitions } from '../../../src/core/ports/order-transitions.js';
import type { PurchaseChannel } from '../../../src/core/ports/channels.js';
import type { SaleRepository } from '../../../src/core/ports/sale-repository.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { MemoryBreakerStore } from '../../helpers/memory/memory-admission-stores.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { noAdmissionMetrics } from '../../helpers/no-metrics.js';

const ON = breakerRules.parse({ mode: 'on', callsMin: 5 });
const DEPENDENCIES: readonly Dependency[] = ['redis', 'rocketmq', 'mysql'];

/** Ports whose methods all give the same answer, or throw the same error. They record their arguments. */
class Ports {
  readonly clock = new SteppedClock();
  rules: BreakerRules = ON;
  readonly asked: string[] = [];
  answer: () => Promise<unknown> = () => Promise.resolve({ outcome: 'deducted' });
  readonly breakers = new SharedBreakers(
    {
      rules: () => this.rules,
      store: new MemoryBreakerStore(this.clock),
      clock: this.clock,
      random: () => 0,
      metrics: noAdmissionMetrics,
      log: silentLog,
    },
    { processId: 'p', ...REPORT_TIMES },
  );
  readonly wrapped = breakerWrappers(this.breakers);

  port<T extends object>(...methods: readonly (keyof T & string)[]): T {
    const entries = methods.map((method) => [
      method,
      (...asked: unknown[]) => {
        this.asked.push([method, ...asked].join(' '));
        return this.answer();
      },
    ]);
    return Object.fromEntries(entries) as T;
  }

  /** Every call that goes through a breaker, by its dependency. */
  calls(): Record<Dependency, Record<string, () => Promise<unknown>>> {
    const store = this.wrapped.store(this.port<StockStore>('precheck', 'deduct', 'resolve', 'findRequest', 'readSale'));
    const orders = this.wrapped.orders(this.port<OrderRepository>('findByPurchases', 'findOrder'));
    const transitions = this.wrapped.transitions(this.port<OrderTransitions>('pay', 'cancel'));
    const sales = this.wrapped.sales(this.port<SaleRepository>('find'));
    const channel = this.wrapped.channel(this.port<PurchaseChannel>('sendHalf'));
    const any = (value: unknown): never => value as never;
    return {
      redis: {
        precheck: () => store.precheck(any(1), any(2)),
        deduct: () => store.deduct(any(1)),
        resolve: () => store.resolve(any(1)),
        findRequest: () => store.findRequest(any(1), any(2), any(3)),
        readSale: () => store.readSale(any(1)),
      },
      rocketmq: { sendHalf: () => channel.sendHalf(any(1)) },
      mysql: {
        findByPurchases: () => orders.findByPurchases(any(1), any(2)),
        findOrder: () => orders.findOrder(any(1)),
        pay: () => transitions.pay(any(1), any(2)),
        cancel: () => transitions.cancel(any(1)),
        find: () => sales.find(any(1)),
      },
    };
  }

  /** Returns which breakers are open after this number of calls. */
  async openAfter(call: () => Promise<unknown>): Promise<Dependency[]> {
    for (let i = 0; i < 20; i++) {
      this.clock.advance(200);
      await call().catch(() => undefined);
    }
    return DEPENDENCIES.filter((dependency) => this.breakers.refuses(dependency));
  }
}

describe('api: ports with breakers', () => {
  const each = async (check: (dependency: Dependency, name: string) => Promise<void>): Promise<void> => {
    for (const [dependency, calls] of Object.entries(new Ports().calls())) {
      for (const name of Object.keys(calls)) await check(dependency as Dependency, name);
    }
  };

  it('make a call once with its arguments, and return its answer', async () => {
    await each(async (dependency, name) => {
      for (const rules of [ON, breakerRules.parse({})]) {
        const ports = new Ports();
        ports.rules = rules;
        const answer = { outcome: 'deducted' };
        ports.answer = () => Promise.resolve(answer);
        expect(await ports.calls()[dependency][name]?.(), name).to.equal(answer);
        expect(ports.asked, name).to.have.length(1);
        expect(ports.asked[0]).to.match(new RegExp(`^${name} 1( 2( 3)?)?$`));
      }
    });
  });

  it('open only the breaker of the dependency that fails', async () => {
    await each(async (dependency, name) => {
      const ports = new Ports();
      const fault = new OperationalError(dependency, 'out', { retryable: true });
      ports.answer = () => Promise.reject(fault);
      const call = ports.calls()[dependency][name] as () => Promise<unknown>;
      expect(await call().catch((error: unknown) => error), name).to.equal(fault);
      expect(await ports.openAfter(call), name).to.deep.equal([dependency]);
    });
  });

  it('recognise outcomes that mean a failure in calls that never throw', async () => {
    for (const [dependency, name, failed] of [
      ['redis', 'deduct', { outcome: 'outcome_unknown' }],
      ['redis', 'resolve', 'outcome_unknown'],
      ['rocketmq', 'sendHalf', 'unavailable'],
      ['rocketmq', 'sendHalf', 'outcome_unknown'],
    ] as const) {
      const ports = new Ports();
      ports.answer = () => Promise.resolve(failed);
      expect(await ports.openAfter(ports.calls()[dependency][name] as () => Promise<unknown>), name).to.deep.equal([
        dependency,
      ]);
    }
  });

  it('do not count a refusal as a failure', async () => {
    for (const [dependency, name, refused] of [
      ['redis', 'deduct', { outcome: 'refused', answers: [] }],
      ['redis', 'deduct', { outcome: 'stale_epoch' }],
      ['redis', 'resolve', 'no_answer'],
      ['rocketmq', 'sendHalf', { commit: () => undefined }],
    ] as const) {
      const ports = new Ports();
      ports.answer = () => Promise.resolve(refused);
      expect(await ports.openAfter(ports.calls()[dependency][name] as () => Promise<unknown>), name).to.deep.equal([]);
    }
  });

  it('return the promise of the port itself when breakers are off', () => {
    const ports = new Ports();
    ports.rules = breakerRules.parse({});
    const own = Promise.resolve(null);
    ports.answer = () => own;
    for (const calls of Object.values(ports.calls())) {
      for (const [name, call] of Object.entries(calls)) expect(call(), name).to.equal(own);
    }
  });
});

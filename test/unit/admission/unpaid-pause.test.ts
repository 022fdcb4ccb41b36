import { expect } from 'chai';
import { orderRules } from '../../../src/admission/orders/order-rules.js';
import { UnpaidPause } from '../../../src/admission/orders/unpaid-pause.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { Order } from '../../../src/core/order.js';
import type { ExpiredOrders } from '../../../src/core/ports/order-repository.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { partial } from '../../helpers/partial.js';

const RULES = { mode: 'on', unpaidPauseMs: 60_000, unpaidPauseMaxMs: 600_000 };

describe('pause after unpaid orders', () => {
  const clock = new SteppedClock();
  let raw: object;
  let expired: Map<string, ExpiredOrders>;
  let rows: Pick<Order, 'userId'>[];
  let queries: string[][];
  let answer: () => Promise<void>;
  let refusals: string[];
  let pause: UnpaidPause;
  beforeEach(() => {
    [raw, expired, rows, queries, refusals] = [RULES, new Map(), [], [], []];
    answer = () => Promise.resolve();
    pause = new UnpaidPause({
      rules: () => orderRules.parse(raw),
      repository: partial({
        expiredOf: async (_, userIds) => {
          queries.push([...userIds]);
          await answer();
          return expired;
        },
        findByPurchases: async () => rows as Order[],
      }),
      clock,
      metrics: partial({ refused: (...words) => void refusals.push(words.join(' ')) }),
    });
  });
  const check = (userId = 'ann', saleId = '7') => pause.check({ saleId, userId, requestId: 'k1' });
  const leave = (count: number, lastAgoMs = 0): void => void expired.set('ann', { count, lastAgoMs });

  it('doubles with each unpaid order up to a maximum, and begins when the last order ended', async () => {
    expect(await check()).to.equal(null);
    for (const [count, pauseMs] of [
      [1, 60_000],
      [2, 120_000],
      [4, 480_000],
      [5, 600_000],
      [4000, 600_000],
    ] as const) {
      leave(count);
      expect(await check()).to.equal(pauseMs);
    }
    leave(2, 100_000);
    expect(await check()).to.equal(20_000);
    leave(2, 120_000);
    expect(await check(), 'it is over').to.equal(null);
    expect(new Set(refusals)).to.deep.equal(new Set(['orders unpaid_pause on']));
  });

  it('makes no query when off, for other sales, or if no pause is set', () => {
    leave(1);
    for (const off of [{}, { ...RULES, mode: 'off' }, { ...RULES, sales: ['1'] }, { mode: 'on' }]) {
      raw = off;
      expect(check()).to.equal(null);
    }
    expect(queries).to.deep.equal([]);
  });

  it('in a dry run, counts but refuses no buyer', async () => {
    raw = { ...RULES, mode: 'dry_run' };
    leave(1);
    expect(await check()).to.equal(null);
    expect(refusals).to.deep.equal(['orders unpaid_pause dry_run']);
  });

  it('lets a purchase with an order pass, so that the buyer gets the same answer', async () => {
    leave(1);
    rows = [{ userId: 'ann' }];
    expect(await check()).to.equal(null);
    expect(refusals).to.deep.equal([]);
  });

  it('shares one further query between all purchases that arrive during a query', async () => {
    let open: () => void = () => undefined;
    answer = () => new Promise((resolve) => (open = resolve));
    const first = check('u0');
    await new Promise((resolve) => setImmediate(resolve));
    const others = Array.from({ length: 1100 }, (_, place) => check(`u${1 + Math.floor(place / 2)}`));
    answer = () => Promise.resolve();
    leave(1);
    expect(await check('ann', '8'), 'another sale does not wait').to.equal(60_000);
    open();
    await Promise.all([first, ...others]);
    expect(queries.map(({ length }) => length)).to.deep.equal([1, 1, 500, 50]);
  });

  it('admits every buyer, without a query for a second, if MySQL fails or is slow', async () => {
    leave(1);
    answer = () => Promise.reject(new OperationalError('mysql', 'down', { retryable: true }));
    expect(await check()).to.equal(null);
    expect(check(), 'not asked').to.equal(null);
    clock.advance(1000);
    answer = () => new Promise(() => undefined);
    const slow = check();
    clock.advance(500);
    expect(await slow).to.equal(null);
    expect(check()).to.equal(null);
    expect(queries).to.have.length(2);
  });

  it('reports a bug as a bug, not as a slow server', async () => {
    answer = () => Promise.reject(new Error('a bug'));
    const failed = await Promise.resolve(check()).catch(String);
    expect(failed).to.equal('Error: a bug');
  });

  it('refuses rules with a maximum pause shorter than the first pause', () => {
    const read = orderRules.safeParse({ mode: 'on', unpaidPauseMs: 60_000, unpaidPauseMaxMs: 30_000 });
    expect(read.error?.issues.map(({ path }) => path)).to.deep.equal([['unpaidPauseMaxMs']]);
  });
});

import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { RequestEntry } from '../../../src/core/outcome.js';
import type { Order, OrderState } from '../../../src/core/order.js';
import type { FoundBy } from '../../../src/purchase/metrics.js';
import { FollowPurchase, type FollowAnswer } from '../../../src/purchase/follow-purchase.js';
import type { StepWord } from '../../../src/purchase/follow-purchase.js';
import type { ClosedRows } from '../../../src/purchase/closed-rows.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import type { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { MemoryPurchaseNotifications } from '../../helpers/memory/memory-purchase-notifications.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';
import { orderOf, saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

const POLL_MAX_MS = 5000;
const sale = saleOf();
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('follow-purchase', () => {
  let clock: SteppedClock;
  let notifications: MemoryPurchaseNotifications;
  let entry: RequestEntry | null;
  let row: Order | null;
  let fault: OperationalError | null;
  let found: FoundBy[];
  let leaving: AbortController;
  let follow: FollowPurchase;

  beforeEach(() => {
    clock = new SteppedClock();
    notifications = new MemoryPurchaseNotifications();
    [entry, row, fault, found] = [{ state: 'held', batchId: 'b1', quantity: 1 }, null, null, []];
    leaving = new AbortController();
    const ports = {
      snapshots: partial<SaleSnapshots>({ get: async () => ({ snapshot: 'ready', sale }) }),
      store: partial<StockStore>({
        findRequest: async () => {
          if (fault !== null) throw fault;
          return entry;
        },
        askForRepair: async () => undefined,
      }),
      repository: partial<OrderRepository>({ findByPurchases: async () => (row === null ? [] : [row]) }),
      closedRows: partial<ClosedRows>({ find: async () => row }),
      clock,
      notifications,
      random: () => 0,
      metrics: { changeFound: (by: FoundBy) => void found.push(by) },
    };
    follow = new FollowPurchase(ports, { followersMax: 4, followersPerBuyerMax: 2, pollMaxMs: POLL_MAX_MS });
  });

  /** Changes the order as a worker, a payment or a sweep does. */
  const become = (state: OrderState): Order => {
    row = orderOf({ saleId: sale.saleId, state, reason: state === 'failed' ? 'discarded' : null });
    entry = { state: 'ordered', orderId: '101', quantity: 1 };
    return row;
  };
  const open = (seen: StepWord | null = null, userId = 'u1'): Promise<FollowAnswer> =>
    follow.open({ saleId: sale.saleId, userId, requestId: 'k1', seen, signal: leaving.signal });
  /** States as they arrive. */
  const followed = async (
    seen: StepWord | null = null,
    userId = 'u1',
  ): Promise<{ words: string[]; ended: () => boolean }> => {
    const answer = await open(seen, userId);
    if (answer.outcome !== 'following') throw new Error(answer.outcome);
    const words: string[] = [];
    let over = false;
    void (async () => {
      for await (const { word } of answer.steps()) words.push(word);
      over = true;
    })();
    await turns();
    return { words, ended: () => over };
  };

  it('sends the current step and each further step, and ends after the last step', async () => {
    const { words, ended } = await followed();
    expect(words).to.deep.equal(['pending']);
    await notifications.send(sale.saleId, [become('pending_payment')]);
    await turns();
    expect([words, ended()]).to.deep.equal([['pending', 'ordered'], false]);
    await notifications.send(sale.saleId, [become('paid')]);
    await turns();
    expect([words, ended()]).to.deep.equal([['pending', 'ordered', 'paid'], true]);
    expect([found, notifications.listening, follow.following]).to.deep.equal([['notification', 'notification'], 0, 0]);
  });

  for (const state of ['cancelled', 'expired', 'failed'] as const) {
    it(`ends with ${state}`, async () => {
      const { words, ended } = await followed();
      await notifications.send(sale.saleId, [become(state)]);
      await turns();
      expect([words, ended()]).to.deep.equal([['pending', state], true]);
    });
  }

  it('sends duplicate and late notifications only once, and never goes a step back', async () => {
    const { words } = await followed();
    const ordered = become('pending_payment');
    for (let copies = 0; copies < 3; copies++) await notifications.send(sale.saleId, [ordered]);
    await turns();
    await notifications.send(sale.saleId, [become('paid')]);
    await notifications.send(sale.saleId, [ordered]);
    await turns();
    expect(words).to.deep.equal(['pending', 'ordered', 'paid']);
  });

  it('sends a reconnected client only the steps it has not seen', async () => {
    become('pending_payment');
    const { words } = await followed('ordered');
    expect(words).to.deep.equal([]);
    await notifications.send(sale.saleId, [become('paid')]);
    await turns();
    expect(words).to.deep.equal(['paid']);
    expect((await followed('pending')).words).to.deep.equal(['paid']);
    expect((await open('paid')).outcome).to.equal('ended');
    expect(follow.following).to.equal(0);
  });

  it('finds a change by a poll within the longest pause if no notification arrives [M1]', async () => {
    const { words } = await followed();
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 1000) {
      clock.advance(1000);
      await turns();
    }
    become('expired');
    for (let waitedMs = 0; waitedMs < POLL_MAX_MS; waitedMs += 1000) {
      clock.advance(1000);
      await turns();
    }
    expect(words).to.deep.equal(['pending', 'expired']);
    expect(found).to.deep.equal(['read']);
  });

  it('waits out an outage, but reports a fault that exists at the start [R8, D1]', async () => {
    const { words } = await followed();
    fault = new OperationalError('redis', 'gone', { retryable: true });
    notifications.reconnect();
    await turns();
    expect(await open().catch((error: unknown) => error)).to.equal(fault);
    fault = null;
    become('paid');
    notifications.reconnect();
    await turns();
    expect(words).to.deep.equal(['pending', 'paid']);
    expect(follow.following).to.equal(0);
  });

  it('refuses a follower beyond the limit until another follower leaves [S7]', async () => {
    const first = await followed();
    for (const userId of ['u2', 'u3', 'u4']) await followed(null, userId);
    expect((await open(null, 'u5')).outcome).to.equal('overloaded');
    leaving.abort();
    await turns();
    expect([first.ended(), follow.following, notifications.listening]).to.deep.equal([true, 0, 0]);
  });

  it('keeps one buyer from taking all places [S7]', async () => {
    const [first, second] = [await open(), await open()];
    expect((await open()).outcome, 'the third of this buyer').to.equal('overloaded');
    expect((await open(null, 'u2')).outcome).to.equal('following');
    if (first.outcome !== 'following' || second.outcome !== 'following') throw new Error('not following');
    first.close();
    first.close();
    expect((await open()).outcome).to.equal('following');
    expect((await open()).outcome, 'one place was given back, once').to.equal('overloaded');
    expect(follow.following).to.equal(3);
  });

  it('sends a step after the shortest pause if its notification precedes the order [D1]', async () => {
    const { words } = await followed();
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 1000) {
      clock.advance(1000);
      await turns();
    }
    const stillHeld = entry;
    const ordered = become('pending_payment');
    const recorded = entry;
    entry = stillHeld;
    await notifications.send(sale.saleId, [ordered]);
    await turns();
    expect(words, 'no step that the next read may take back').to.deep.equal(['pending']);
    entry = recorded;
    clock.advance(50);
    await turns();
    expect(words).to.deep.equal(['pending', 'ordered']);
  });

  it('sends a step after the shortest pause if Redis is down at its notification [R8]', async () => {
    const { words } = await followed();
    for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 1000) {
      clock.advance(1000);
      await turns();
    }
    fault = new OperationalError('redis', 'gone', { retryable: true });
    await notifications.send(sale.saleId, [become('paid')]);
    await turns();
    fault = null;
    clock.advance(50);
    await turns();
    expect(words).to.deep.equal(['pending', 'paid']);
  });

  it('does not follow an unknown purchase', async () => {
    entry = null;
    expect((await open()).outcome).to.equal('not_found');
    expect(follow.following).to.equal(0);
  });
});

import { expect } from 'chai';
import type { OrderNotification } from '../../../src/core/order-notifications.js';
import { PurchaseWatch } from '../../../src/purchase/purchase-watch.js';
import { MemoryPurchaseNotifications } from '../../helpers/memory/memory-purchase-notifications.js';
import { SteppedClock } from '../../helpers/memory/stepped-clock.js';

const POLL_MAX_MS = 5000;
const PURCHASE = { saleId: '7', userId: 'u1', requestId: 'k1' };
const ORDERED: OrderNotification = {
  userId: 'u1',
  requestId: 'k1',
  orderId: '101',
  state: 'pending_payment',
  reason: null,
};
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe('purchase-watch', () => {
  let clock: SteppedClock;
  let notifications: MemoryPurchaseNotifications;
  let never: AbortSignal;
  beforeEach(async () => {
    clock = new SteppedClock();
    notifications = new MemoryPurchaseNotifications();
    never = new AbortController().signal;
    notifications.listen({ ...PURCHASE, requestId: 'another' }, () => undefined); // opens the subscription of the sale
    await turns();
  });

  /** Starts a watch and records its reads, in ms from now. */
  function readsOf(random: number): { watch: PurchaseWatch; atMs: number[] } {
    const startMs = clock.nowMs();
    const watch = new PurchaseWatch(PURCHASE, { notifications, clock, random: () => random }, POLL_MAX_MS);
    const atMs: number[] = [];
    void (async () => {
      for (;;) {
        await watch.next(Infinity, never);
        atMs.push(clock.nowMs() - startMs);
      }
    })();
    return { watch, atMs };
  }
  const pass = async (ms: number, stepMs = 10): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
      clock.advance(stepMs);
      await turns();
    }
  };

  it('polls quickly at first, then rarely, but never less often than configured', async () => {
    const { atMs } = readsOf(0);
    await pass(12_000);
    expect(atMs).to.deep.equal([50, 200, 650, 2000, 6050, 11_050]);
  });

  it('spreads the polls of callers that arrive together', async () => {
    const [one, other] = [readsOf(0), readsOf(0.99)];
    await pass(2500, 1);
    expect(other.atMs).to.have.length.of.at.least(4);
    expect(one.atMs.filter((atMs) => other.atMs.includes(atMs))).to.deep.equal([]);
  });

  it('reads within a second of a lost subscription, spread over the callers [R8]', async () => {
    const watches = [0, 0.25, 0.5, 0.999].map(readsOf);
    await pass(7000, 50);
    for (const { atMs } of watches) atMs.length = 0;
    notifications.reconnect();
    notifications.reconnect();
    await turns();
    await pass(1000);
    expect(watches.map(({ atMs }) => atMs)).to.deep.equal([[7000], [7250], [7500], [8000]]);
  });

  it('ends the wait at once on a notification, even after a lost subscription', async () => {
    const { watch, atMs } = readsOf(0.5);
    await pass(7000, 50);
    atMs.length = 0;
    notifications.reconnect();
    await pass(100);
    await notifications.send('7', [ORDERED]);
    await turns();
    expect(atMs).to.deep.equal([7100]);
    watch.close();
  });

  it('does not replace a later step with a late copy of an early step', async () => {
    const watch = new PurchaseWatch(PURCHASE, { notifications, clock, random: () => 0 }, POLL_MAX_MS);
    for (const state of ['pending_payment', 'paid', 'pending_payment'] as const) {
      await notifications.send('7', [{ ...ORDERED, state }]);
    }
    expect(await watch.next(Infinity, never)).to.include({ orderState: 'paid' });
  });

  it('returns the notification, and polls again soon on request', async () => {
    const watch = new PurchaseWatch(PURCHASE, { notifications, clock, random: () => 0 }, POLL_MAX_MS);
    for (let reads = 0; reads < 8; reads++) {
      const next = watch.next(Infinity, never);
      await pass(POLL_MAX_MS, POLL_MAX_MS);
      expect(await next).to.equal(null);
    }
    await notifications.send('7', [ORDERED]);
    expect(await watch.next(Infinity, never)).to.include({ status: 'ordered', orderId: '101' });
    watch.readSoon();
    const next = watch.next(Infinity, never);
    let isOver = false;
    void next.then(() => (isOver = true));
    await pass(40);
    expect(isOver).to.equal(false);
    await pass(10);
    expect(isOver).to.equal(true);
  });
});

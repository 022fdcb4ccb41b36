import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { EventStreamClient } from '../helpers/event-stream-client.js';
import { ask } from '../chaos/harness/http.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../chaos/harness/sales.js';
import type { Program } from '../chaos/harness/programs.js';
import { useSystem } from '../helpers/system.js';
import { pause } from '../chaos/harness/wait.js';

/** Longer than any test, so that events come with notifications. */
const NO_POLLS = { NOTIFICATIONS_POLL_MAX_MS: '60000' };
const PAYMENTS = { PAYMENT_PROVIDER: 'simulator' };
/**
 * The first polls come after 50 ms and 3, 9, 27 and 81 times as long, and one more within a second of the subscription.
 * After this time, the next poll is 12 s away.
 */
const FIRST_POLLS_MS = 6_500;
/** `ordered` by the stream and by the long poll, `paid` by the stream. */
const STEPS_HEARD = 3;

describe('a buyer who waits at two APIs', () => {
  let first: Program;
  let second: Program;
  let worker: Program;
  let keeper: Program;
  const system = useSystem(async ({ programs }) => {
    [first, second, worker, keeper] = await Promise.all([
      programs.start('api', { env: { ...NO_POLLS, ...PAYMENTS } }),
      programs.start('api', { env: PAYMENTS }),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', OUTBOX_EVERY_MS: '100' } }),
    ]);
  });

  const buyersOf = (saleId: string, api: Program): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, () => [api.url]);
  const listen = (buyers: Buyers, userId: string, api: Program, lastEventId?: string): Promise<EventStreamClient> =>
    EventStreamClient.open(`${api.url}/v1/sales/${buyers.saleId}/purchases/k1/events`, {
      token: buyers.token(userId),
      ...(lastEventId === undefined ? {} : { lastEventId }),
    });
  const pay = async (buyers: Buyers, userId: string, orderId: unknown, api: Program): Promise<void> => {
    const url = `${api.url}/v1/orders/${String(orderId)}/pay`;
    expect((await ask(url, { method: 'POST', token: buyers.token(userId) })).status).to.equal(200);
  };
  const foundByNotification = async (api: Program): Promise<number> => {
    const { text } = await ask(`${api.operatorsUrl}/metrics`);
    return Number(/^seckill_awaited_changes_total\{found_by="notification"[^}]*\} (\S+)$/m.exec(text)?.[1] ?? 0);
  };

  /** Makes and pays a purchase. @returns the number of steps of which the buyer's API learned by notification */
  async function heardByNotification(userId: string): Promise<number> {
    const { saleId } = await openSale(system.stack, { stock: 5 });
    const [here, there] = [buyersOf(saleId, first), buyersOf(saleId, second)];
    worker.signal('SIGSTOP');
    keeper.signal('SIGSTOP');
    expect((await there.buy(userId))?.status).to.equal(202);
    const stream = await listen(here, userId, first);
    expect([stream.status, stream.headers['content-type']]).to.deep.equal([200, 'text/event-stream']);
    const poll = here.status(userId, 'k1', 25);
    expect((await listen(here, 'bob', first)).status, 'the purchase of another buyer').to.equal(404);
    await pause(FIRST_POLLS_MS);
    expect(stream.eventNames).to.deep.equal(['pending']);
    const before = await foundByNotification(first);
    worker.signal('SIGCONT');
    await stream.received('ordered');
    expect((await poll).json.status, 'the long poll ends as well').to.equal('ordered');
    const ordered = (await foundByNotification(first)) - before; // the keeper is stopped

    keeper.signal('SIGCONT');
    const { orderId } = stream.events[1]?.data ?? {};
    await pay(there, userId, orderId, second);
    await stream.received('paid');
    await stream.end();
    expect(stream.events.map(({ id }) => id)).to.deep.equal(['pending', 'ordered', 'paid']);
    expect(stream.events.at(-1)?.data).to.deep.equal({
      requestId: 'k1',
      saleId,
      status: 'ordered',
      orderId,
      orderState: 'paid',
    });
    const again = await listen(here, userId, first, 'ordered');
    await again.end();
    expect(again.eventNames, 'only events that were not seen').to.deep.equal(['paid']);
    expect((await listen(here, userId, first, 'paid')).status).to.equal(204);
    expect(await expectInvariants(system.stack, saleId)).to.include({ sold: 1, rows: 1 });
    return ordered === 2 ? (await foundByNotification(first)) - before : ordered;
  }

  it('receives `ordered` from the worker and `paid` from its event once, then the end of the stream', async () => {
    let heard = 0;
    // on a busy machine, some notifications may come later than the next poll
    for (const userId of ['ann', 'cid', 'dan']) if (heard < STEPS_HEARD) heard = await heardByNotification(userId);
    expect(heard, 'steps that came by notification').to.equal(STEPS_HEARD);
  });
});

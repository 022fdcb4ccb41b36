import { expect } from 'chai';
import type { OrderEvent, OrderEventType } from '../../src/core/order-event.js';
import type { Webhook, WebhookChanges } from '../../src/contract/webhooks.js';
import type { Job } from '../../src/core/job.js';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createDueWork } from '../../src/mysql/due-work.js';
import { createJobLeases } from '../../src/mysql/job-leases.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { createOverdueRepository } from '../../src/mysql/overdue-repository.js';
import { createDeliveryStore } from '../../src/operate/webhooks/delivery-store.js';
import { createEndpointStore, ENDPOINTS_MAX } from '../../src/operate/webhooks/endpoint-store.js';
import { webhookJobs } from '../../src/operate/webhooks/jobs.js';
import type { Sent } from '../../src/operate/webhooks/send.js';
import { planningWebhooks } from '../../src/operate/webhooks/services.js';
import { until } from '../chaos/harness/wait.js';
import { ownMysqlWorld, systemClock, type MysqlWorld } from './repository-worlds.js';

const EVENTS: OrderEventType[] = ['order.created', 'order.paid', 'order.refunded'];
const DELIVERED: Sent = { outcome: 'delivered', detail: 'status 204' };
const REJECTED: Sent = { outcome: 'rejected', detail: 'status 422' };
const FAILED: Sent = { outcome: 'failed', detail: 'status 500' };

describe('contract webhooks on MySQL', () => {
  let world: MysqlWorld;
  let sent: string[];
  let logged: unknown[];
  let dropped: Record<string, number>;
  let stopping: AbortController;
  let receive: (url: string, id: string) => Sent | Promise<Sent>;
  before(async () => {
    world = await ownMysqlWorld();
  });
  after(() => world.close());
  beforeEach(async () => {
    for (const table of ['webhook_endpoints', 'webhook_deliveries', 'outbox', 'job_leases', 'audit_log']) {
      await world.pool.execute(`DELETE FROM ${table}`);
    }
    [sent, logged, dropped] = [[], [], {}];
    stopping = new AbortController();
    receive = () => DELIVERED;
  });

  const endpoints = () => createEndpointStore(world.pool);
  const deliveries = () => createDeliveryStore(world.pool);
  const endpoint = async (url = 'https://a.example/', events = EVENTS): Promise<string> => {
    const made = await endpoints().create({ url, events }, 'root');
    return typeof made === 'string' ? expect.fail(made) : made.endpointId;
  };
  const edit = async (endpointId: string, changes: WebhookChanges): Promise<Webhook> => {
    const edited = await endpoints().edit(endpointId, changes, 'ann');
    return edited === null || typeof edited === 'string' ? expect.fail(String(edited)) : edited;
  };
  const keeper = () => ({
    mysql: world.pool,
    leases: createJobLeases(world.pool),
    owner: 'one',
    sendWebhook: async ({ url }: { readonly url: string }, { id }: { readonly id: string }) => {
      sent.push(id);
      return receive(url, id);
    },
    config: { keeper: { outboxEveryMs: 500 } },
    due: (_: unknown, job: Job) => job,
    stopping: stopping.signal,
    clock: systemClock,
    metrics: {
      webhookTried: () => undefined,
      webhooksDropped: (reason: string, events: number) => void (dropped[reason] = (dropped[reason] ?? 0) + events),
    },
    log: {
      ...{ debug: () => undefined, info: () => undefined },
      warn: (fields: object) => void logged.push(fields),
      error: (fields: object) => void logged.push(fields),
    },
  });
  /** A run of the loop of one endpoint. */
  const run = (of = webhookJobs(keeper())): Promise<unknown> => of[0]?.[1].runOnce() ?? expect.fail();
  const tidy = (): Promise<unknown> => webhookJobs(keeper()).at(-1)?.[1].runOnce() ?? expect.fail();
  /** An outbox row with its event. */
  const happened = async (type: OrderEventType, ...orders: string[]): Promise<OrderEvent> => {
    const kind = type === 'order.created' ? 'batch_recorded' : 'orders_moved';
    const sql = "INSERT INTO outbox (kind, `key`, payload) VALUES (?, 'k', '{}')";
    const { insertId } = await world.pool.execute(sql, [kind]);
    return { eventId: `${insertId}-${type.slice(6)}`, type, saleId: '7', orders, atMs: 1_764_000_000_000 };
  };
  const plan = async (...events: OrderEvent[]): Promise<void> =>
    planningWebhooks({ publish: () => Promise.resolve() }, world.pool).publish(events);
  const done = (...events: OrderEvent[]): Promise<void> =>
    createOutbox(world.pool).markDone(events.map(({ eventId }) => eventId.split('-')[0] ?? ''));
  /** Plans and ends these events. */
  const publish = async (...events: OrderEvent[]): Promise<void> => {
    await plan(...events);
    await done(...events);
  };
  const idOf = ({ eventId }: OrderEvent, orderId: string): string => `${eventId}-${orderId}`;
  /** Makes postponed deliveries due. */
  const elapse = async (): Promise<void> => {
    for (const table of ['webhook_endpoints', 'webhook_deliveries']) {
      await world.pool.execute(`UPDATE ${table} SET available_at = UTC_TIMESTAMP(3)`);
    }
  };
  const stateOf = async (): Promise<string | undefined> => (await endpoints().list())[0]?.state;

  it('sends no event before an earlier event of its order, in whatever order the outbox is worked off', async () => {
    await endpoint();
    const created = await happened('order.created', '1', '2');
    const paid = await happened('order.paid', '2');
    await publish(paid);
    await run();
    expect(sent, 'created is not planned').to.deep.equal([]);
    await plan(created, created);
    await run();
    expect(sent, 'created is not done').to.deep.equal([]);
    await done(created);
    await run();
    expect(sent.filter((id) => id.endsWith('-2'))).to.deep.equal([idOf(created, '2'), idOf(paid, '2')]);
    expect(sent).to.have.members([idOf(created, '1'), idOf(created, '2'), idOf(paid, '2')]);
    await run();
    expect(sent, 'once').to.have.length(3);
  });

  it('sends each endpoint only its types', async () => {
    const urls: string[] = [];
    receive = (url, id) => (urls.push(`${url} ${id.split('-')[1]}`), DELIVERED);
    await endpoint('https://a.example/', ['order.paid']);
    await endpoint('https://b.example/', ['order.refunded', 'order.created']);
    await publish(await happened('order.created', '1'), await happened('order.paid', '1'));
    const jobs = webhookJobs(keeper());
    await run(jobs);
    await run(jobs);
    expect(urls).to.have.members(['https://a.example/ paid', 'https://b.example/ created']);
  });

  it('holds up only the order of a rejected event, also the events that come later', async () => {
    const endpointId = await endpoint();
    const created = await happened('order.created', '1', '2');
    receive = (_, id) => (id === idOf(created, '1') ? REJECTED : DELIVERED);
    await publish(created);
    await run();
    await world.pool.execute(
      "UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE state = 'due'",
    );
    const later = await happened('order.paid', '1', '2');
    await publish(later);
    await run();
    await run();
    expect(sent).to.have.members([idOf(created, '1'), idOf(created, '2'), idOf(later, '2')]);
    const due = await deliveries().list(endpointId, { state: 'due', limit: 10 });
    expect(due.map(({ type, attempts, lastError }) => [type, attempts, lastError])).to.deep.equal([
      ['order.paid', 0, null],
      ['order.created', 1, 'status 422'],
    ]);
    expect(await createDueWork(world.pool)()).to.not.include('webhook');
    receive = () => DELIVERED;
    await elapse();
    await run();
    expect(sent.slice(3)).to.deep.equal([idOf(created, '1'), idOf(later, '1')]);
  });

  it('probes an endpoint in trouble with one event, and sends all at once when it is back', async () => {
    await endpoint();
    const orders = Array.from({ length: 200 }, (_, index) => String(index + 1));
    receive = () => FAILED;
    await publish(await happened('order.created', ...orders));
    await run();
    expect(sent.length, 'one per lane').to.be.at.most(8);
    const tried = sent.length;
    const [rest] = await world.pool.query<object>(
      'SELECT available_at > failing_since AS rests, failures FROM webhook_endpoints',
    );
    expect(JSON.stringify(rest)).to.match(/"rests":"?1"?,"failures":1/);
    await world.pool.execute('UPDATE webhook_endpoints SET available_at = UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE');
    await run();
    expect(sent.length, 'it rests').to.equal(tried);
    await world.pool.execute('UPDATE webhook_endpoints SET available_at = UTC_TIMESTAMP(3)');
    await run();
    expect(sent.length, 'one probe').to.equal(tried + 1);
    receive = () => DELIVERED;
    await elapse();
    await run();
    await run();
    expect(new Set(sent).size).to.equal(200);
    expect(await createDueWork(world.pool)(), 'none waits').to.not.include('webhook');
  });

  it('tries an event again soon after its receiver is back, when it was down for long', async () => {
    const endpointId = await endpoint();
    await publish(await happened('order.created', '1'));
    await world.pool.execute('UPDATE webhook_deliveries SET attempts = 30');
    receive = () => FAILED;
    await run();
    const [delivery] = await deliveries().list(endpointId, { state: 'due', limit: 1 });
    const waitsMs = Date.parse(delivery?.nextTry ?? '') - systemClock.nowMs();
    expect(waitsMs).to.be.within(0, 100_000);
  });

  it('does not repeat a rejected event when other events are delivered, nor pause the endpoint', async () => {
    const endpointId = await endpoint();
    const rejection = await happened('order.created', '3');
    receive = (_, id) => (id === idOf(rejection, '3') ? REJECTED : DELIVERED);
    await publish(rejection);
    await run();
    expect(await endpoints().find(endpointId)).to.include({ last_error: 'status 422', failing_since: null });
    await world.pool.execute(
      "UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE state = 'due'",
    );
    await publish(await happened('order.created', '1'));
    await run();
    await run();
    expect(
      sent.filter((id) => id === idOf(rejection, '3')),
      'it waits',
    ).to.have.length(1);
    expect(await createDueWork(world.pool)()).to.not.include('webhook');
    expect(await endpoints().find(endpointId)).to.include({ state: 'active', last_error: null });
  });

  it('sends events of a sale although an event of another sale cannot be published', async () => {
    await endpoint();
    const stuck = await happened('order.created', '9');
    const sql = 'UPDATE outbox SET sale_id = ? WHERE id = ?';
    await world.pool.execute(sql, ['8', stuck.eventId.split('-')[0] ?? '']);
    const created = await happened('order.created', '1');
    await publish(created);
    await run();
    expect(sent).to.deep.equal([idOf(created, '1')]);
  });

  it('sends to an endpoint while another is slow', async () => {
    const slow = await endpoint('https://slow.example/');
    await endpoint('https://fast.example/');
    let answer: (sent: Sent) => void = () => expect.fail();
    receive = (url) => (url.includes('slow') ? new Promise<Sent>((resolve) => (answer = resolve)) : DELIVERED);
    await publish(await happened('order.created', '1'));
    const jobs = webhookJobs(keeper());
    const first = run(jobs);
    await until('it hangs', () => sent.length === 1);
    await run(jobs);
    expect(sent).to.have.length(2);
    await run(jobs);
    expect(sent, 'no second loop takes the slow endpoint').to.have.length(2);
    answer(DELIVERED);
    await first;
    expect(await deliveries().list(slow, { state: 'delivered', limit: 10 })).to.have.length(1);
  });

  it('leaves the work to the keeper that has the lease', async () => {
    await endpoint();
    await publish(await happened('order.created', '1'));
    await createJobLeases(world.pool).hold('deliver-webhooks', 'another', 60_000);
    await run();
    expect(sent).to.deep.equal([]);
  });

  it('pauses an endpoint that has failed for a day, and continues when it is resumed', async () => {
    const endpointId = await endpoint();
    await publish(await happened('order.created', '1'));
    receive = () => FAILED;
    await run();
    expect(await stateOf()).to.equal('active');
    await world.pool.execute('UPDATE webhook_endpoints SET failing_since = UTC_TIMESTAMP(3) - INTERVAL 25 HOUR');
    await elapse();
    await run();
    expect(await stateOf()).to.equal('failed');
    expect(logged).to.deep.equal([{ endpointId, detail: 'status 500' }]);
    expect((await createOverdueRepository(world.pool).overdue({ webhook_paused: 0 })).webhook_paused.count).to.equal(1);
    await elapse();
    await run();
    expect(sent).to.have.length(2);
    receive = () => DELIVERED;
    await endpoints().edit(endpointId, { state: 'active' }, 'root');
    await run();
    expect(sent).to.have.length(3);
    expect((await endpoints().list())[0]).to.include({ state: 'active', lastError: null, failingSince: null });
  });

  it('audits changes without the secret, and keeps the number of endpoints bounded', async () => {
    const endpointId = await endpoint();
    const before = await endpoints().find(endpointId);
    const after = await edit(endpointId, { newSecret: true, url: 'https://b.example/' });
    expect(after).to.include({ url: 'https://b.example/', state: 'active' });
    expect(after.secret)
      .to.match(/^whsec_[\w-]{43}$/)
      .and.not.equal(before?.secret);
    expect(await endpoints().remove(endpointId, 'ann')).to.equal(true);
    expect(await endpoints().remove(endpointId, 'ann')).to.equal(false);
    expect(await endpoints().edit(endpointId, { state: 'paused' }, 'ann')).to.equal(null);
    const entries = await createAuditLog(world.pool).list({ subject: `webhook:${endpointId}` }, { max: 10 });
    expect(entries.map(({ actor, action }) => [actor, action])).to.deep.equal([
      ['ann', 'webhook.removed'],
      ['ann', 'webhook.edited'],
      ['root', 'webhook.created'],
    ]);
    expect(JSON.stringify(entries)).to.not.include('whsec_');
    for (let n = 1; n <= ENDPOINTS_MAX; n++) await endpoint();
    const more = { url: 'https://c.example/', events: EVENTS };
    expect(await endpoints().create(more, 'root')).to.equal('There are 10 endpoints already. Remove one first.');
  });

  it('sends again what an operator names, drops what is a week old, and removes what is a month old', async () => {
    const endpointId = await endpoint();
    const events = [await happened('order.created', '1', '2'), await happened('order.paid', '1')];
    await publish(...events);
    await run();
    const [first, ...others] = await deliveries().list(endpointId, { limit: 2 });
    expect(await deliveries().list(endpointId, { limit: 2, before: others[0]?.deliveryId })).to.have.length(1);
    expect(await deliveries().resend(endpointId, [first?.deliveryId ?? '', '999999'], 'ann')).to.equal(1);
    expect(await deliveries().resend('999', [first?.deliveryId ?? ''], 'ann')).to.equal(0);
    await run();
    expect(sent).to.have.length(4);
    expect(sent[3]).to.equal(first?.eventId);

    await publish(await happened('order.refunded', '1'));
    const aged = (days: number): Promise<unknown> =>
      world.pool.execute(`UPDATE webhook_deliveries SET created_at = UTC_TIMESTAMP(3) - INTERVAL ${days} DAY`);
    await aged(8);
    await tidy();
    await tidy();
    expect(await deliveries().list(endpointId, { state: 'dropped', limit: 10 })).to.have.length(1);
    expect(dropped).to.deep.equal({ too_old: 1, removed: 0 });
    expect(logged, 'once').to.deep.equal([{ endpointId, reason: 'too_old', events: 1 }]);
    await aged(31);
    await tidy();
    expect(await deliveries().list(endpointId, { limit: 10 })).to.deep.equal([]);
  });

  it('drops and counts what a removed endpoint did not get', async () => {
    const [removed, kept] = [await endpoint(), await endpoint('https://b.example/')];
    await publish(await happened('order.created', '1', '2'));
    await endpoints().remove(removed, 'ann');
    await tidy();
    expect(dropped).to.deep.equal({ too_old: 0, removed: 2 });
    expect(logged).to.deep.equal([{ endpointId: removed, reason: 'removed', events: 2 }]);
    const due = async (endpointId: string) => (await deliveries().list(endpointId, { state: 'due', limit: 10 })).length;
    expect([await due(removed), await due(kept)]).to.deep.equal([0, 2]);
  });

  it('begins no call after the keeper is told to stop, and leaves the rest to the next keeper', async () => {
    const endpointId = await endpoint();
    const orders = Array.from({ length: 300 }, (_, index) => String(index + 1));
    await publish(await happened('order.created', ...orders));
    receive = () => {
      if (sent.length === 100) stopping.abort();
      return DELIVERED;
    };
    await run();
    expect(sent.length).to.be.within(100, 100 + 8);
    const told = sent.length;
    expect(await deliveries().list(endpointId, { state: 'delivered', limit: 1000 })).to.have.length(told);
    stopping = new AbortController();
    await run();
    expect(new Set(sent).size).to.equal(300);
    expect(sent, 'none twice').to.have.length(300);
  });

  it('signs with the replaced secret too for a day', async () => {
    const endpointId = await endpoint();
    const { secret } = (await endpoints().find(endpointId)) ?? expect.fail();
    const renewed = await edit(endpointId, { newSecret: true });
    expect(await endpoints().find(endpointId)).to.include({ secret: renewed.secret, secret_before: secret });
    const until = Date.parse(renewed.previousSecretUntil ?? '') - systemClock.nowMs();
    expect(until).to.be.within(86_400_000 - 600_000, 86_400_000 + 600_000);
    await tidy();
    expect(await endpoints().find(endpointId)).to.include({ secret_before: secret });
    await world.pool.execute('UPDATE webhook_endpoints SET secret_before_until = UTC_TIMESTAMP(3)');
    await tidy();
    expect(await endpoints().find(endpointId)).to.include({ secret: renewed.secret, secret_before: null });
  });

  it('makes no other secret while a replaced one signs, and says from when on it does', async () => {
    const endpointId = await endpoint();
    const { secret } = (await endpoints().find(endpointId)) ?? expect.fail();
    const renewed = await edit(endpointId, { newSecret: true });
    const again = await endpoints().edit(endpointId, { newSecret: true, url: 'https://b.example/' }, 'ann');
    expect(again).to.be.a('string').that.includes(`before ${renewed.previousSecretUntil}.`);
    const unchanged = { url: renewed.url, secret: renewed.secret, secret_before: secret };
    expect(await endpoints().find(endpointId)).to.include(unchanged);
    expect(await edit(endpointId, { state: 'paused' }), 'another change').to.include({ state: 'paused' });
    await world.pool.execute('UPDATE webhook_endpoints SET secret_before_until = UTC_TIMESTAMP(3)');
    await edit(endpointId, { newSecret: true });
    expect(await endpoints().find(endpointId)).to.include({ secret_before: renewed.secret });
  });
});

import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { newBatchId, sealBatch } from '../../src/core/batch.js';
import { TOPICS } from '../../src/core/topics.js';
import type { Snapshot } from '../../src/contract/live.js';
import { createDeadLetterParking } from '../../src/mysql/dead-letters.js';
import { createDeadLetterStore } from '../../src/operate/dead-letters/dead-letter-store.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { SYSTEM_ACTOR } from '../../src/core/ports/sale-repository.js';
import { Buyers, userIds } from '../chaos/harness/buyers.js';
import { ask, type Answer, type Ask } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { found, until } from '../chaos/harness/wait.js';
import { runCommand } from '../helpers/command.js';
import { EventStreamClient } from '../helpers/event-stream-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { silentLog } from '../helpers/silent-log.js';
import { useSystem } from '../helpers/system.js';

interface Second {
  readonly atMs: number;
  readonly won: number | null;
  readonly landed: number;
  readonly refused: Readonly<Record<string, number>> | null;
}

const sumOf = (counts: Readonly<Record<string, number>> | null): number =>
  Object.values(counts ?? {}).reduce((sum, times) => sum + times, 0);

describe('the console API', () => {
  let apis: Program[];
  let token: (role: string) => string;
  const system = useSystem(async ({ programs, stack }) => {
    const keeper = programs.start('keeper', { env: { KEEPER_EVERY_MS: '500', REPAIR_QUIET_MS: '200' } });
    apis = await Promise.all([
      programs.start('api', { env: { REPAIR_QUIET_MS: '200', REPAIR_WAIT_MAX_MS: '2000' } }),
      programs.start('api'),
    ]);
    await Promise.all([programs.start('worker', { env: { WORKER_RETRY_FIRST_MS: '10' } }), keeper]);
    const signer = new Buyers('1', stack.env.JWT_SECRET, () => []);
    token = (role) => signer.token('ann', [role]);
  });
  const clients: EventStreamClient[] = [];
  afterEach(() => clients.splice(0).forEach((client) => client.close()));

  const buyersOf = (saleId: string, urls = (): readonly string[] => apis.map(({ url }) => url)): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, urls);
  const read = (
    path: string,
    options: Ask & { readonly role?: string; readonly api?: number } = {},
  ): Promise<Answer> => {
    const { role = 'viewer', api = 0, ...asked } = options;
    const url = `${(apis[api] as Program).operatorsUrl}/admin/v1${path}`;
    return ask(url, { token: token(role), timeoutMs: 30_000, ...asked });
  };
  const listen = async (api: number): Promise<EventStreamClient> => {
    const url = `${(apis[api] as Program).operatorsUrl}/admin/v1/live`;
    const client = await EventStreamClient.open(url, { token: token('viewer') });
    clients.push(client);
    return client;
  };
  const snapshots = (client: EventStreamClient): Snapshot[] =>
    client.events.map(({ data }) => data as unknown as Snapshot);

  it('streams the sums of both APIs and every running program from each API', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 12, limitPerBuyer: 1 });
    const consoles = await Promise.all([listen(0), listen(1)]);
    /** Collects what a stream reported for each second with answers. */
    const told = (client: EventStreamClient): Map<number, { won: number; refused: number; landed: number }> => {
      const shown = snapshots(client).flatMap(({ sales }) => sales.filter((sale) => sale.saleId === saleId));
      const seconds = shown.map(({ secondAtMs, acceptedPerSecond, refusedPerSecond, landedPerSecond }) => {
        const figures = { won: acceptedPerSecond ?? 0, refused: sumOf(refusedPerSecond), landed: landedPerSecond ?? 0 };
        return [secondAtMs ?? 0, figures] as const;
      });
      return new Map(seconds.filter(([, { won, refused }]) => won + refused > 0));
    };
    const won = [0, 0];
    let asked = 0;
    await until(
      'both streams have told of buyers',
      async () => {
        const one = asked % 2;
        const answer = await buyersOf(saleId, () => [(apis[one] as Program).url]).buy(`buyer${asked++}`);
        if (answer?.status === 202) won[one] = (won[one] ?? 0) + 1;
        return asked >= 20 && consoles.every((client) => told(client).size > 0);
      },
      { everyMs: 20 },
    );
    expect(Math.min(...won), 'each api sold some').to.be.greaterThan(0);

    const seconds = await found('every answer and every order in the history', async () => {
      const { json } = await read(`/sales/${saleId}/seconds`, { api: 1 });
      const rows = (json as { seconds?: Second[] }).seconds ?? [];
      const total = (of: (second: Second) => number): number => rows.reduce((sum, second) => sum + of(second), 0);
      const isWhole =
        total((second) => (second.won ?? 0) + sumOf(second.refused)) === asked && total(({ landed }) => landed) === 12;
      return isWhole ? rows : null;
    });
    expect(seconds.reduce((sum, second) => sum + (second.won ?? 0), 0)).to.equal(12);
    for (const client of consoles) {
      for (const [atMs, { won: accepted, refused }] of told(client)) {
        const second = seconds.find((one) => one.atMs === atMs);
        expect([accepted, refused], 'a stream says what both apis answered').to.deep.equal([
          second?.won,
          sumOf(second?.refused ?? null),
        ]);
      }
    }

    const last = await found('a snapshot of the sale at rest', async () => {
      const snapshot = snapshots(consoles[1] as EventStreamClient).at(-1);
      const sale = snapshot?.sales.find((one) => one.saleId === saleId);
      return sale?.sold === 12 && sale.pending === 0 ? { ...snapshot, sale } : null;
    });
    expect(last.sale).to.deep.include({
      state: 'open',
      stock: 12,
      sold: 12,
      held: 0,
      left: 0,
      buckets: 1,
      waiting: null,
    });
    const kinds = (last.programs ?? []).map(({ kind, ready }) => `${kind} ${ready}`);
    expect(kinds).to.include.members(['api true', 'worker true', 'keeper true']);
    expect(kinds.filter((kind) => kind === 'api true')).to.have.length.at.least(2);
    expect(last.missing).to.deep.equal([]);
    await expectInvariants(stack, saleId);
  });

  it('streams a problem as its alert describes it until the cause ends', async () => {
    const { stack } = system;
    const client = await listen(0);
    const conditions = (): string[] => (snapshots(client).at(-1)?.conditions ?? []).map(({ name }) => name);
    await client.received('snapshot');
    // dead letters of earlier tests, which no program handles any more
    await stack.mysql.execute("UPDATE dead_letters SET state = 'discarded' WHERE state = 'parked'");
    await until('nothing else is parked', () => !conditions().includes('SeckillDeadLetterParked'));
    const { saleId } = await openSale(stack, { stock: 5 });
    const [id] = await park(saleId, ['bob']);
    await until('the dead letter is a condition', () => conditions().includes('SeckillDeadLetterParked'));
    expect((await read(`/dead-letters/${id}/discard`, { method: 'POST', role: 'admin' })).status).to.equal(200);
    await until('it has ended', () => !conditions().includes('SeckillDeadLetterParked'));
    await expectInvariants(stack, saleId);
  });

  it('shows RocketMQ like the command, finds a message by its key, and asks the broker in a trace', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 5 });
    const buyers = buyersOf(saleId);
    expect((await buyers.buy('carl'))?.status).to.equal(202);
    const orderId = await found('the order', async () => (await buyers.status('carl')).json.orderId ?? null);
    const order = (await read(`/orders/${String(orderId)}`)).json;
    const batchId = String(order.batchId);

    const status = (await read('/mq/status')).json as {
      brokers?: { down: string | null }[];
      groups?: { group: string }[];
    };
    const command = await runCommand(['mq', 'status', '--json'], stack.env);
    const [shown] = command.lines as unknown as { groups: { group: string }[] }[];
    expect(status.brokers?.map(({ down }) => down)).to.deep.equal([null]);
    const names = (groups: readonly { group: string }[] = []): string[] => groups.map(({ group }) => group).sort();
    expect(names(status.groups)).to.deep.equal(names(shown?.groups));

    const messages = (await read(`/mq/messages?key=${batchId}`)).json as { items?: { topic: string; body: string }[] };
    expect(messages.items?.map(({ topic }) => topic)).to.deep.equal([TOPICS.purchase]);
    expect(JSON.parse(messages.items?.[0]?.body ?? '{}')).to.deep.include({ batchId, saleId });
    for (const path of ['/mq/groups', '/mq/topics', '/mq/halves', '/mq/halves/discarded', '/mq/producers']) {
      const { status: code, json, text } = await read(path);
      expect([code, Array.isArray(json.items), json.down], `${path}: ${text.slice(0, 200)}`).to.deep.equal([
        200,
        true,
        [],
      ]);
    }
    const none = await read('/mq/halves/resume', { method: 'POST', role: 'operator', body: { key: batchId } });
    expect([none.status, none.json.code], 'it was never given up').to.deep.equal([409, 'wrong_state']);

    const traced = (await read(`/requests/${batchId}`)).json as {
      purchases?: { timeline: { stage: string; state: string; at: string | null }[] }[];
    };
    const stations = traced.purchases?.[0]?.timeline ?? [];
    for (const name of ['half', 'commit', 'row']) {
      const { state, at } = stations.find(({ stage }) => stage === name) ?? { state: '', at: null };
      expect([state, at === null], name).to.deep.equal(['done', false]);
    }
    await expectInvariants(stack, saleId);
  });

  it('replays all of many dead letters after a dry run, and audits each', async () => {
    const { stack } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    const ids = await park(saleId, userIds(6));
    const bulk = (dryRun: boolean, role = 'operator'): Promise<Answer> =>
      read('/dead-letters/bulk', {
        method: 'POST',
        role,
        body: { action: 'replay', filter: { saleId, text: 'gave up' }, dryRun },
        timeoutMs: 60_000,
      });
    expect((await bulk(true)).json).to.include({ matching: 6 });
    expect((await bulk(false, 'viewer')).json.code, 'a viewer may not').to.equal('role_needed');
    const letter = (await read(`/dead-letters/${ids[0]}`)).json as { orders?: { order: unknown }[] };
    expect(letter.orders?.map(({ order }) => order)).to.deep.equal([null]);
    const { text, status } = await bulk(false);
    expect(status).to.equal(200);
    const events = [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, event, data]) => [
      event,
      JSON.parse(String(data)),
    ]);
    expect(events.filter(([event]) => event === 'progress')).to.have.length(6);
    const [name, end] = events.at(-1) ?? [];
    expect([name, end]).to.deep.equal(['end', { done: 6, failed: 0, left: 0, stopped: null, failures: [] }]);
    for (const id of ids) {
      const { entries } = (await read(`/audit?subject=dead_letter:${id}`)).json as {
        entries?: { action: string; actor: string }[];
      };
      const [end, begun] = entries?.map(({ action, actor }) => `${actor} ${action}`) ?? [];
      expect(begun).to.equal('ann dead_letter.replay_begun');
      expect(end, 'a keeper may see the order first').to.be.oneOf([
        'ann dead_letter.replayed',
        `${SYSTEM_ACTOR} dead_letter.replayed`,
      ]);
      expect(entries).to.have.length(2);
    }
    const after = (await read(`/dead-letters/${ids[0]}`)).json as { orders?: { order: { state: string } | null }[] };
    expect(after.orders?.[0]?.order?.state).to.equal('pending_payment');
    const csv = await read(`/dead-letters/export?saleId=${saleId}`);
    expect(csv.text.split('\n'), 'a heading, six lines, and the end of the last').to.have.length(8);
    const figures = await expectInvariants(stack, saleId);
    expect(figures).to.include({ sold: 6, rows: 6, unitsLeft: 4 });
  });

  it('shows buckets that need a repair, which an operator starts and which is audited', async () => {
    const { stack, programs } = system;
    const { saleId } = await openSale(stack, { stock: 10 });
    expect((await buyersOf(saleId).buy('dora'))?.status).to.equal(202);
    await expectInvariants(stack, saleId);
    const buckets = async (): Promise<unknown> => {
      const { json } = await read(`/sales/${saleId}/buckets`);
      const [bucket] = json.buckets as { state: string | null; unitsLeft: number | null; epoch: number | null }[];
      return [bucket?.state, bucket?.unitsLeft, bucket?.epoch];
    };
    expect(await buckets()).to.deep.equal(['open', 9, 1]);
    const repair = (body?: object, role = 'operator'): Promise<Answer> =>
      read(`/sales/${saleId}/repair`, { method: 'POST', role, body, timeoutMs: 60_000 });
    expect((await repair(undefined, 'viewer')).json.code).to.equal('role_needed');
    expect((await repair()).json).to.deep.equal({ outcome: 'not_needed' });
    const forced = await repair({ force: true });
    expect(forced.json, forced.text).to.include({ outcome: 'repaired', unitsLeft: 9, epoch: 2 });
    expect(await buckets()).to.deep.equal(['open', 9, 2]);
    const { entries } = (await read(`/audit?subject=sale:${saleId}&actor=ann`)).json as { entries?: unknown[] };
    expect(entries).to.have.length(1);

    // The sale is lost while no keeper runs, so that the console does the keeper's work.
    const keeper = programs.all.find(({ name }) => name === 'keeper') as Program;
    await keeper.stop();
    const { stock, sale, requests, buyers } = bucketKeys({ saleId, bucket: 0 });
    await stack.redis.redis.del(stock, sale, requests, buyers);
    expect(await buckets()).to.deep.equal([null, null, null]);
    const client = await listen(0);
    await until('the stream says so', () => {
      const shown = snapshots(client)
        .at(-1)
        ?.sales.find((one) => one.saleId === saleId);
      return shown?.state === 'repair' && shown.left === null;
    });
    const absent = (): boolean =>
      (snapshots(client).at(-1)?.conditions ?? []).some(({ name }) => name === 'SeckillKeeperAbsent');
    await until('and that no keeper runs', absent);
    expect((await repair()).json).to.include({ outcome: 'repaired', unitsLeft: 9, epoch: 3 });
    await programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } });
    await until('a keeper runs again', () => !absent());
    await expectInvariants(stack, saleId);
  });

  /** Deducts batches of one and parks them, as a worker and a collector leave them. @returns the dead letters */
  async function park(saleId: string, users: readonly string[]): Promise<string[]> {
    const { redis, mysql } = system.stack;
    const [stock, batches] = [createStockStore(redis, silentLog), createBatchStore(redis)];
    const repository = createDeadLetterParking(mysql);
    for (const userId of users) {
      const batch = sealBatch({
        batchId: newBatchId(),
        saleId,
        bucket: 0,
        epoch: 1,
        createdAtMs: Date.now(),
        traceparent: '',
        purchases: [{ userId, requestId: 'k1', quantity: 1 }],
      });
      expect(await stock.deduct(batch)).to.deep.equal({ outcome: 'deducted' });
      await repository.park({
        messageId: randomBytes(16).toString('hex'),
        group: 'seckill-order-writer',
        saleId,
        body: batch.body,
        originTopic: TOPICS.purchase,
        batchId: batch.batchId,
        isBatch: true,
        reason: 'retries_exhausted',
        attempts: 8,
        detail: 'the consumer group gave up on it',
      });
      await batches.park(batch);
    }
    return (await createDeadLetterStore(mysql).list({ saleId }, { max: 100 })).map(({ deadLetterId }) => deadLetterId);
  }
});

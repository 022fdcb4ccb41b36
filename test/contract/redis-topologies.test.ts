import { expect } from 'chai';
import { Redis } from 'ioredis';
import type { Batch } from '../../src/core/batch.js';
import { OperationalError } from '../../src/core/errors.js';
import { purchaseKey } from '../../src/core/purchase.js';
import type { Sale } from '../../src/core/sale.js';
import { silentLog } from '../helpers/silent-log.js';
import type { StockStore } from '../../src/core/ports/stock-store.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { readRedisMemory } from '../../src/redis/memory.js';
import { findRedisMisconfiguration, probeRedis, probeRedisWrites } from '../../src/redis/probe.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { createReconcileStore } from '../../src/redis/reconcile-store.js';
import { createRepairStore } from '../../src/redis/repair-store.js';
import { SCRIPT_NAMES } from '../../src/redis/scripts.js';
import { createBatchStore } from '../../src/redis/batch-store.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { startRedisCluster, type RedisCluster } from '../helpers/redis-cluster.js';
import { startSentinelRedis, type SentinelRedis } from '../helpers/redis-sentinel.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { found, grantedMsOf, pause, until } from '../chaos/harness/wait.js';

const STOCK = 10_000;
const at = ({ saleId }: Sale) => ({ saleId, bucket: 0 });

/** Opens a sale with many units and a high limit per buyer. */
async function openSale(connection: RedisConnection): Promise<Sale> {
  const sale = saleOf({ stock: STOCK, limitPerBuyer: STOCK });
  const sales = createSaleStore(connection);
  await sales.warm(sale);
  await sales.setState(sale, 'open');
  return sale;
}

const definite = (verdict: string): string | null =>
  ['deducted', 'aborted', 'outlived'].includes(verdict) ? verdict : null;

/** Repairs the bucket on its new server as the keeper does, with all its entries. */
async function repair(connection: RedisConnection, sale: Sale): Promise<Sale> {
  const store = createRepairStore(connection);
  const ref = at(sale);
  const token = 'a-test';
  expect(await store.lock(ref, token, 30_000)).to.equal('locked');
  let held = 0;
  for await (const entries of createReconcileStore(connection).requests(ref)) {
    for (const [, { quantity }] of entries) held += quantity;
    expect(await store.stage(ref, token, entries)).to.equal('staged');
  }
  const repaired: Sale = { ...sale, epoch: sale.epoch + 1 };
  const { epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = repaired;
  const terms = { epoch, state: 'open', opensAtMs, closesAtMs, limitPerBuyer, buckets } as const;
  const rebuilt = { ...terms, unitsLeft: STOCK - held };
  expect(await store.swap(ref, token, rebuilt)).to.equal('swapped');
  return repaired;
}

/** Returns how many scripts a server has run since its start, without refused scripts. */
async function scriptsRun(server: Redis): Promise<number> {
  const stats = await server.info('commandstats');
  const calls = [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+).*?(?:rejected_calls=(\d+))?/gm)];
  return calls.reduce((sum, [, run]) => sum + Number(run), 0);
}

describe('contract: Redis cluster', () => {
  let cluster: RedisCluster;
  let connection: RedisConnection;
  let store: StockStore;
  before(async () => {
    cluster = await startRedisCluster();
    connection = await connectRedis({ url: cluster.url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
    store = createStockStore(connection, silentLog);
  });
  after(async () => {
    await connection?.close();
    await cluster?.stop();
  });

  it('checks every server at start: scripts, clock and settings', async () => {
    await until('the scripts are loaded', async () => (await connection.scriptsLoaded()) === SCRIPT_NAMES.length);
    for (const server of cluster.admin) expect(await server.info('commandstats')).to.include('cmdstat_script');
    expect((await probeRedis(connection)).detail).to.include(
      `${SCRIPT_NAMES.length} of ${SCRIPT_NAMES.length} scripts`,
    );
    await cluster.admin[2]?.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const problems = await findRedisMisconfiguration(connection);
    expect(problems.filter((one) => one.includes('allkeys-lru'))).to.have.length(1);
    expect(
      problems.filter((one) => one.includes('appendonly')),
      'reported once',
    ).to.have.length(1);
    await cluster.admin[2]?.config('SET', 'maxmemory-policy', 'noeviction');
  });

  it('writes to each server, and is ready while one server accepts writes [R9]', async () => {
    const setAll = (bytes: string): Promise<unknown> =>
      Promise.all(cluster.admin.map((server) => server.config('SET', 'maxmemory', bytes)));
    const [first] = cluster.admin;
    await first?.config('SET', 'maxmemory', '1');
    try {
      const { ok, detail } = await probeRedisWrites(connection);
      expect(ok).to.equal(true);
      expect(detail).to.match(/^127\.0\.0\.1:\d+: Redis is full .*; sales on other servers continue$/);
      await setAll('1');
      const full = await probeRedisWrites(connection);
      expect(full.ok).to.equal(false);
      expect(full.detail.match(/Redis is full/g)).to.have.length(3);
    } finally {
      await setAll('0');
    }
    expect((await probeRedisWrites(connection)).ok).to.equal(true);
  });

  it('keeps the number of units exact when a slot moves during purchases [R12, T8]', async () => {
    const sale = await openSale(connection);
    const { stock, tx } = bucketKeys(at(sale));
    const [source, target] = [await cluster.ownerOf(stock), ((await cluster.ownerOf(stock)) + 1) % 3];
    const [from, to] = [cluster.admin[source] as Redis, cluster.admin[target] as Redis];
    const slot = Number(await from.cluster('KEYSLOT', stock));
    const ids = (await Promise.all([from, to].map((server) => server.cluster('MYID')))) as [string, string];

    const traffic = new Traffic(store, sale);
    const running = Promise.all(Array.from({ length: 4 }, () => traffic.run()));
    try {
      await traffic.more('before', 50);
      await to.call('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', ids[0]);
      await from.call('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', ids[1]);
      const { port } = cluster.servers[target] as { port: number };
      for (let left = true; left;) {
        const keys = (await from.call('CLUSTER', 'GETKEYSINSLOT', String(slot), '10')) as string[];
        left = keys.length > 0;
        if (left) await from.call('MIGRATE', '127.0.0.1', String(port), '', '0', '5000', 'KEYS', ...keys);
        await traffic.more('meanwhile', 3);
      }
      // The keys have moved, but not the slot, so only ASK leads to the keys.
      const { batch } = traffic.deducted[0] as { batch: Batch };
      const orders = batch.purchases.map((purchase) => ({
        ...purchase,
        orderId: '1',
        state: 'pending_payment' as const,
      }));
      await createBatchStore(connection).markRecorded([{ batch, orders }]);
      const [first] = orders.map(purchaseKey);
      const [entry] = await createReconcileStore(connection).entriesOf(at(sale), [first ?? '']);
      expect(entry?.state, 'marked recorded behind an ASK').to.equal('ordered');

      await Promise.all(
        [to, from, ...cluster.admin].map((one) => one.call('CLUSTER', 'SETSLOT', String(slot), 'NODE', ids[1])),
      );
      expect(await cluster.ownerOf(stock), 'it has moved').to.equal(target);
      await until('the new server refuses it as a stale epoch', () => traffic.stale > 0);
      const already = traffic.deducted.length;
      traffic.sale = await repair(connection, sale);
      await until('purchases are held at the new server', () => traffic.deducted.length >= already + 50);
    } finally {
      traffic.stop();
      await running;
    }
    await traffic.resolveAll();

    expect(traffic.unknown, 'while it moves, outcomes are unknown').to.be.greaterThan(0);
    const held = traffic.deducted.reduce((sum, { batch }) => sum + batch.purchases.length, 0);
    expect((await store.readSale(at(sale)))?.unitsLeft, 'every unit is accounted for').to.equal(STOCK - held);
    for (const { batchId } of traffic.undone) expect(await to.get(tx + batchId), 'never deducted').to.equal(null);
  });

  it('does not repeat a deduct when its connection breaks, and reconnects for the next command [R8]', async () => {
    const sale = await openSale(connection);
    const owner = await cluster.ownerOf(bucketKeys(at(sale)).stock);
    const server = cluster.admin[owner] as Redis;
    const before = await scriptsRun(server);
    const batch = batchOf(sale, purchasesOf('u1'));
    cluster.servers[owner]?.signal('SIGSTOP');
    const verdict = store.deduct(batch);
    await pause(100); // The request has been sent.
    const { port } = cluster.servers[owner] as { port: number };
    connection
      .masters()
      .find((one) => one.options.port === port)
      ?.stream.destroy();
    cluster.servers[owner]?.signal('SIGCONT');
    expect(await verdict).to.deep.equal({ outcome: 'outcome_unknown' });
    await until('it ran', async () => (await scriptsRun(server)) > before);
    expect((await scriptsRun(server)) - before, 'it ran once').to.equal(1);
    expect(await found('its outcome', () => store.resolve(batch).then(definite))).to.equal('deducted');
    expect((await store.readSale(at(sale)))?.unitsLeft).to.equal(STOCK - 1);
  });

  it('fails only the buckets of a hanging server when many buckets are read [R8]', async () => {
    const batches = createBatchStore(connection);
    const repairs = createRepairStore(connection);
    const sales: Sale[] = [];
    for (let i = 0; i < 12; i++) sales.push(await openSale(connection));
    for (const sale of sales) await store.deduct(batchOf(sale, purchasesOf('u1')));
    const owners = await Promise.all(sales.map((sale) => cluster.ownerOf(bucketKeys(at(sale)).stock)));
    const [hung] = owners as [number];
    const reached = sales.filter((_, index) => owners[index] !== hung).map(at);
    expect(reached.length, 'they are on several servers').to.be.within(1, 11);
    cluster.servers[hung]?.signal('SIGSTOP');
    try {
      const startedMs = performance.now();
      const readying = probeRedisWrites(connection).then((probe) => ({
        ...probe,
        tookMs: performance.now() - startedMs,
      }));
      const [pending, statuses, ready, memory] = await Promise.all([
        batches.withPending(sales.map(at)),
        repairs.statusOrFault(sales.map(at)),
        readying,
        readRedisMemory(connection),
      ]);
      expect(pending.refs).to.deep.equal(reached);
      expect(pending.faults).to.have.length(12 - reached.length);
      for (const fault of pending.faults) expect(fault).to.include({ dependency: 'redis', retryable: true });
      const known = statuses.map((status) => !(status instanceof OperationalError));
      expect(known).to.deep.equal(owners.map((owner) => owner !== hung));
      const { port = 0 } = cluster.servers[hung] ?? {};
      expect(ready, 'a program sells what the others have').to.deep.include({ ok: true });
      expect(ready.detail).to.include(`127.0.0.1:${port}`);
      expect(ready.tookMs, 'whoever asks for readiness does not wait long').to.be.lessThan(2000);
      expect(memory.filter((one) => one instanceof OperationalError).length).to.equal(1);
      expect(memory.filter((one) => 'server' in one).length).to.equal(2);
    } finally {
      cluster.servers[hung]?.signal('SIGCONT');
    }
    await until('it answers again', async () => (await batches.withPending(sales.map(at))).faults.length === 0);
  });

  it('makes sales of an unreachable server unavailable at once, and serves other sales [R8]', async () => {
    for (const server of cluster.admin) await server.config('SET', 'cluster-require-full-coverage', 'no');
    const sales = [await openSale(connection), await openSale(connection), await openSale(connection)];
    const owners = await Promise.all(sales.map((sale) => cluster.ownerOf(bucketKeys(at(sale)).stock)));
    const away = owners[0] as number;
    await cluster.servers[away]?.stop();
    const gone = sales[0] as Sale;
    await cluster.admin[(away + 1) % 3]?.config('SET', 'cluster-require-full-coverage', 'yes');
    await until('the probe says so', async () => /cluster is down/.test((await probeRedis(connection)).detail));
    await cluster.admin[(away + 1) % 3]?.config('SET', 'cluster-require-full-coverage', 'no');
    await until('it is noticed', async () => {
      const error = await store.precheck(at(gone), purchasesOf('u1')).catch((one: unknown) => one);
      return error instanceof OperationalError && error.retryable;
    });
    const tookMs = await grantedMsOf(async () => {
      expect(await store.deduct(batchOf(gone, purchasesOf('u1')))).to.deep.equal({ outcome: 'outcome_unknown' });
    });
    expect(tookMs, 'within the reply time-out').to.be.lessThan(5500);
    for (const [index, sale] of sales.entries()) {
      if (owners[index] === away) continue;
      const serve = async () => (await store.deduct(batchOf(sale, purchasesOf('u2')))).outcome === 'deducted';
      await until('the others are served', serve);
    }
  });
});

/** Makes purchases in several loops. */
class Traffic {
  readonly deducted: { batch: Batch }[] = [];
  /** Batches that were not deducted. */
  readonly undone: Batch[] = [];
  unknown = 0;
  stale = 0;
  sale: Sale;
  readonly #store: StockStore;
  readonly #unresolved: Batch[] = [];
  #sent = 0;
  #stopped = false;

  constructor(store: StockStore, sale: Sale) {
    this.#store = store;
    this.sale = sale;
  }

  async run(): Promise<void> {
    while (!this.#stopped) {
      const name = `u${this.#sent++}`;
      const batch = batchOf(this.sale, purchasesOf(`${name}/a`, `${name}/b`));
      const { outcome } = await this.#store.deduct(batch);
      if (outcome === 'deducted') this.deducted.push({ batch });
      else if (outcome === 'outcome_unknown') this.#unresolved.push(batch);
      else if (outcome === 'stale_epoch') this.stale++;
      else throw new Error(`deduct said ${outcome}`);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until this many more purchases were sent. */
  async more(when: string, count: number): Promise<void> {
    const enough = this.#sent + count;
    await until(`${count} more, ${when}`, () => this.#sent >= enough);
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Calls resolve until there is an answer, as the check-back does. */
  async resolveAll(): Promise<void> {
    this.unknown = this.#unresolved.length;
    for (const batch of this.#unresolved.splice(0)) {
      const verdict = await found('what became of a batch', async () => {
        return definite(await this.#store.resolve(batch));
      });
      if (verdict === 'deducted') this.deducted.push({ batch });
      else if (verdict === 'outlived') this.undone.push(batch);
    }
  }
}

describe('contract: Redis with sentinels', () => {
  let sentinel: SentinelRedis;
  let connection: RedisConnection;
  before(async () => {
    sentinel = await startSentinelRedis();
    connection = await connectRedis({ url: sentinel.url, replyTimeoutMs: 3000, connectTimeoutMs: 1000 }, silentLog);
  });
  after(async () => {
    await connection?.close();
    await sentinel?.stop();
  });

  it('follows a fail-over, repeats no command, and finds the scripts on the new master [R8]', async () => {
    const store = createStockStore(connection, silentLog);
    const sale = await openSale(connection);
    const early = batchOf(sale, purchasesOf('u1'));
    expect((await store.deduct(early)).outcome).to.equal('deducted');
    const [server] = connection.masters() as [Redis];
    expect(await server.call('WAIT', '1', '10000'), 'the replica has it').to.equal(1);

    sentinel.master.signal('SIGSTOP'); // it will never answer, but its connection is still open
    const lost = batchOf(sale, purchasesOf('u2'));
    expect(await store.deduct(lost), 'no reply').to.deep.equal({ outcome: 'outcome_unknown' });
    await until(
      'the client is at the new master',
      async () =>
        server.status === 'ready' &&
        /tcp_port:(\d+)/.exec(await server.info('server'))?.[1] === String(sentinel.replica.port),
    );
    const fresh = new Redis({ host: '127.0.0.1', port: sentinel.replica.port });
    try {
      expect(await scriptsRun(fresh), 'nothing was sent again').to.equal(0);
      await until('it knows the scripts', async () => (await connection.scriptsLoaded()) === SCRIPT_NAMES.length);
      expect(await store.resolve(early)).to.equal('deducted');
      expect(await store.resolve(lost), 'the new master has no marker of it').to.equal('no_answer');
      expect(await store.deduct(batchOf(sale, purchasesOf('u3')))).to.deep.equal({ outcome: 'stale_epoch' });
      const repaired = await repair(connection, sale);
      expect(await store.resolve(lost), 'it may have been deducted there').to.equal('outlived');
      await until(
        'it takes writes',
        async () => (await store.deduct(batchOf(repaired, purchasesOf('u3')))).outcome === 'deducted',
      );
      expect((await store.readSale(at(sale)))?.unitsLeft).to.equal(STOCK - 2);
    } finally {
      fresh.disconnect();
    }
  });
});

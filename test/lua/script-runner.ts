import { expect } from 'chai';
import type { Batch } from '../../src/core/batch.js';
import { encodeOrderNotifications } from '../../src/core/order-notifications.js';
import type { Purchase } from '../../src/core/purchase.js';
import type { StoredSaleState, Sale } from '../../src/core/sale.js';
import { silentLog } from '../helpers/silent-log.js';
import type { Release, LiveOrder } from '../../src/core/ports/batch-store.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { bucketKeys, notificationsChannel, type BucketKeys } from '../../src/redis/keys.js';
import type { BucketSnapshot } from '../helpers/memory/memory-bucket.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';

/** Life of an aborted marker in these tests, ms. The adapter has its own value. */
export const ABORTED_LIFE_MS = 60_000;
export const RECORDED_LIFE_MS = 120_000;

/** Runs the Lua scripts without the adapters: raw keys, raw replies. */
export class ScriptRunner {
  #connection: RedisConnection | null = null;

  private constructor() {}

  static async open(url: string = stackEnv().REDIS_URL): Promise<ScriptRunner> {
    const runner = new ScriptRunner();
    await runner.#connect(url);
    return runner;
  }

  /** Returns a runner that is connected while the tests of a suite run. */
  static inSuite(): ScriptRunner {
    const runner = new ScriptRunner();
    before(() => runner.#connect(stackEnv().REDIS_URL));
    after(() => runner.#connection?.close());
    return runner;
  }

  async #connect(url: string): Promise<void> {
    this.#connection = await connectRedis({ url, replyTimeoutMs: 10_000, connectTimeoutMs: 3000 }, silentLog);
  }

  get connection(): RedisConnection {
    if (this.#connection === null) throw new Error('a runner is connected only while tests run');
    return this.#connection;
  }

  close(): Promise<void> {
    return this.connection.close();
  }

  async nowMs(): Promise<number> {
    const [seconds, micros] = await this.connection.redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Warms a new sale by its script and puts it into any state, even `repair`. */
  async sale(parts: Partial<Sale> = {}, state: StoredSaleState = 'open'): Promise<SaleScripts> {
    const sale = saleOf(parts, await this.nowMs());
    const runner = new SaleScripts(this, sale);
    await runner.warm();
    await this.connection.redis.hset(runner.keys.sale, 'state', state);
    return runner;
  }
}

/** The scripts on one bucket of one sale. */
export class SaleScripts {
  readonly sale: Sale;
  readonly keys: BucketKeys;
  readonly #runner: ScriptRunner;

  constructor(runner: ScriptRunner, sale: Sale) {
    this.#runner = runner;
    this.sale = sale;
    this.keys = bucketKeys({ saleId: sale.saleId, bucket: 0 });
  }

  get redis(): RedisConnection['redis'] {
    return this.#runner.connection.redis;
  }

  marker(batchId: string): string {
    return this.keys.tx + batchId;
  }

  warm(parts: Partial<Sale> = {}): Promise<unknown> {
    const { stock, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets } = { ...this.sale, ...parts };
    const args = [stock, epoch, opensAtMs, closesAtMs, limitPerBuyer, buckets];
    return this.#run('warm', [this.keys.stock, this.keys.sale], args);
  }

  /** Makes the bucket look as if another server had loaded it, as after a restart. */
  async restart(): Promise<void> {
    for (const stamp of ['run_id', 'repair_run']) {
      if (await this.redis.hexists(this.keys.sale, stamp)) await this.redis.hset(this.keys.sale, stamp, 'another');
    }
  }

  /** Deducts a batch that fits. */
  async deducted(...texts: string[]): Promise<Batch> {
    const batch = batchOf(this.sale, purchasesOf(...texts));
    expect(((await this.deduct(batch)) as unknown[])[0]).to.equal('deducted');
    return batch;
  }

  setState(state: string): Promise<unknown> {
    return this.#run('set-state', [this.keys.sale], [state]);
  }

  /** @param buckets expected by the caller; an empty string accepts any number */
  precheck(purchases: readonly Purchase[], buckets: number | '' = ''): Promise<unknown> {
    const { stock, sale, buyers, requests } = this.keys;
    const triples = purchases.map(({ userId, requestId, quantity }) => [userId, requestId, quantity]);
    return this.#run('precheck', [stock, sale, buyers, requests], [JSON.stringify(triples), buckets]);
  }

  deduct(batch: Batch, runner: ScriptRunner = this.#runner): Promise<unknown> {
    const { stock, sale, buyers, requests, pending } = this.keys;
    const keys = [stock, sale, buyers, requests, this.marker(batch.batchId), pending];
    return runner.connection.run('deduct', keys, [batch.body, ABORTED_LIFE_MS]);
  }

  resolve(batchId: string, epoch: number = this.sale.epoch): Promise<unknown> {
    return this.#run('resolve', [this.marker(batchId), this.keys.sale], [epoch, ABORTED_LIFE_MS]);
  }

  /** @returns how many requests moved, or the word of the refusal */
  async markRecorded(batchId: string, orders: readonly LiveOrder[]): Promise<unknown> {
    const keys = [this.keys.requests, this.keys.pending, this.marker(batchId), this.keys.sale];
    const [word, moved] = (await this.#run('mark-recorded', keys, [
      batchId,
      encodeOrderNotifications(orders),
      notificationsChannel(this.sale.saleId),
      RECORDED_LIFE_MS,
    ])) as unknown[];
    return word === 'recorded' ? moved : word;
  }

  /** Releases key `k1`, by default of any batch and with units. */
  release(userId: string, orderId: string, parts: Partial<Release> = {}): Promise<unknown> {
    const { requestId = 'k1', batchId = '', withUnits = true } = parts;
    const keys = [this.keys.stock, this.keys.buyers, this.keys.requests, this.keys.sale];
    return this.#run('release', keys, [userId, requestId, batchId, orderId, withUnits ? 1 : 0]);
  }

  unpark(batchId: string): Promise<unknown> {
    return this.#run('unpark', [this.marker(batchId), this.keys.pending], [batchId]);
  }

  /** Returns everything the bucket holds, with the markers of the named batches. */
  async snapshot(batchIds: readonly string[] = []): Promise<BucketSnapshot> {
    const { stock, sale, buyers, requests, pending } = this.keys;
    const read = this.redis.multi().hget(sale, 'state').get(stock).hgetall(buyers).hgetall(requests);
    read.zrange(pending, '0', '-1');
    for (const batchId of batchIds) read.get(this.marker(batchId));
    const replies = ((await read.exec()) ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    const [state, units, held, entries, batches, ...markers] = replies;
    const bought = Object.entries(held as Record<string, string>).map(([user, text]) => [user, Number(text)] as const);
    const known = batchIds.map((batchId, index) => [batchId, markers[index]] as const);
    return {
      state: state as StoredSaleState | null,
      unitsLeft: Number(units),
      buyers: Object.fromEntries(bought.filter(([, count]) => count !== 0)),
      requests: entries as Record<string, string>,
      pending: (batches as string[]).sort(),
      markers: Object.fromEntries(known.filter((pair): pair is [string, string] => typeof pair[1] === 'string')),
    };
  }

  #run(...[name, keys, args]: Parameters<RedisConnection['run']>): Promise<unknown> {
    return this.#runner.connection.run(name, keys, args);
  }
}

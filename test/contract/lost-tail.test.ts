import { expect } from 'chai';
import sinon from 'sinon';
import { loadConfig } from '../../src/core/config/load.js';
import { createOutbox } from '../../src/mysql/outbox.js';
import { lostTailOf, markingLeases } from '../../src/mysql/lost-tail.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { markRestored } from '../../src/mysql/restored.js';
import { withConnections } from '../../src/process/connections.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { createOutboxMark } from '../../src/redis/outbox-mark.js';
import { redisServerOrSkip, startDurableRedis, type PrivateRedis } from '../helpers/private-redis.js';
import { silentLog } from '../helpers/silent-log.js';
import { ownMysqlWorld } from './repository-worlds.js';

describe('MySQL that has lost its last writes', () => {
  let server: PrivateRedis;
  let redis: RedisConnection;
  const closed: (() => Promise<void>)[] = [];

  before(async function () {
    server = await startDurableRedis(redisServerOrSkip(this));
  });
  beforeEach(async () => {
    redis = await connectRedis({ url: server.url, replyTimeoutMs: 10_000, connectTimeoutMs: 10_000 }, silentLog);
    await redis.redis.flushall();
  });
  afterEach(async () => {
    for (const close of closed.splice(0).reverse()) await close();
    await redis.close();
  });
  after(() => server?.stop());

  /** A database whose new connections are checked against the mark, as in a program. */
  async function database(): Promise<{ pool: MysqlPool; url: string; fresh: () => MysqlPool }> {
    const world = await ownMysqlWorld();
    closed.push(() => world.close());
    const mark = createOutboxMark(redis);
    const fresh = (): MysqlPool => {
      const limits = { poolMax: 1, queryTimeoutMs: 10_000 };
      const pool = openMysqlPool({ url: world.url, ...limits, flawOf: (session) => lostTailOf(session, mark) });
      closed.push(() => pool.close());
      return pool;
    };
    return { pool: world.pool, url: world.url, fresh };
  }

  async function addEvents(pool: MysqlPool, count: number): Promise<void> {
    const payload = JSON.stringify({ move: 'paid', saleId: '1', orders: [] });
    for (let n = 0; n < count; n++)
      await pool.execute("INSERT INTO outbox (kind, `key`, payload) VALUES ('orders_moved', 'k', ?)", [payload]);
  }
  const leaseAll = (pool: MysqlPool) =>
    markingLeases(createOutbox(pool), createOutboxMark(redis)).lease('orders_moved', 100, 60_000);
  const why = async (pool: MysqlPool): Promise<string> =>
    pool.probe().then(
      () => 'served',
      (error: unknown) => (error as Error).message,
    );

  it('gets no statement until `restored` has run if it would reuse a published event id [D11]', async () => {
    const primary = await database();
    await addEvents(primary.pool, 3);
    await leaseAll(primary.pool);
    expect(await why(primary.fresh())).to.equal('served');

    const promoted = await database(); // stands for a replica that lacks the last event
    await addEvents(promoted.pool, 2);
    const program = promoted.fresh();
    expect(await why(program)).to.match(/next event would be number 3, but event 3 was published.*`seckill restored`/);
    await expectNoWrite(program);

    await markRestored(promoted.pool, 'ann');
    expect(await why(program)).to.equal('served');
  });

  it('still serves if it lost only rows that no keeper had leased', async () => {
    const primary = await database();
    await addEvents(primary.pool, 2);
    await leaseAll(primary.pool);
    const promoted = await database();
    await addEvents(promoted.pool, 2);
    expect(await why(promoted.fresh())).to.equal('served');
  });

  it('is recognized by its counter even when the outbox is empty', async () => {
    const primary = await database();
    await addEvents(primary.pool, 3);
    await leaseAll(primary.pool);
    await primary.pool.execute('DELETE FROM outbox');
    expect(await why(primary.fresh())).to.equal('served');
  });

  it("is recognized from this process's memory while Redis is down, without blocking a healthy MySQL", async () => {
    const primary = await database();
    await addEvents(primary.pool, 3);
    const mark = createOutboxMark(redis);
    await mark.raise(3n);
    const reader = createOutboxMark(redis); // like an api or a worker, which leases nothing
    await reader.read();
    await redis.close();
    const promoted = await database();
    await addEvents(promoted.pool, 1);
    expect(await lostTailOf(primary.pool, mark)).to.equal(null);
    expect(await lostTailOf(promoted.pool, mark)).to.match(/lost its last writes/);
    expect(await lostTailOf(promoted.pool, reader)).to.match(/lost its last writes/);
    expect(await lostTailOf(promoted.pool, createOutboxMark(redis)), 'a process that knows nothing').to.equal(null);
    redis = await connectRedis({ url: server.url, replyTimeoutMs: 10_000, connectTimeoutMs: 10_000 }, silentLog);
  });

  it('keeps the higher mark when a keeper that was asleep raises its mark late', async () => {
    const [ahead, behind] = [createOutboxMark(redis), createOutboxMark(redis)];
    await ahead.raise(9_007_199_254_740_991n);
    await behind.raise(5n);
    expect(await behind.read()).to.equal(9_007_199_254_740_991n);
  });

  it("gets no statement from an operator's command either", async () => {
    const primary = await database();
    await addEvents(primary.pool, 3);
    await leaseAll(primary.pool);
    const promoted = await database();
    const commandOn = ({ url }: { readonly url: string }, redisUrl = server.url): Promise<string> => {
      const config = loadConfig(['mysql', 'redis'], { MYSQL_URL: url, REDIS_URL: redisUrl });
      return withConnections(config, silentLog, (connections) => why(connections.mysql()));
    };
    expect(await commandOn(primary)).to.equal('served');
    expect(await commandOn(promoted)).to.match(/lost its last writes/);
    await redis.redis.flushall();
    expect(await commandOn(promoted), 'a Redis that knows nothing').to.equal('served');
    const said = sinon.stub(console, 'error');
    const outcome = await commandOn(promoted, 'redis://127.0.0.1:1').finally(() => said.restore());
    expect(outcome, 'no Redis').to.equal('served');
    expect(said.args.join()).to.match(/^Redis does not answer, so it is not known/);
  });

  async function expectNoWrite(program: MysqlPool): Promise<void> {
    const refused = await addEvents(program, 1).then(
      () => null,
      (error: unknown) => error,
    );
    expect(refused).to.include({ kind: 'unfit', retryable: true });
  }
});

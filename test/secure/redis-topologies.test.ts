import { expect } from 'chai';
import type { Redis } from 'ioredis';
import type { DeductVerdict } from '../../src/core/ports/stock-store.js';
import { connectRedis, type RedisConnection } from '../../src/redis/connection.js';
import { findRedisMisconfiguration, probeRedis } from '../../src/redis/probe.js';
import { createSaleStore } from '../../src/redis/sale-store.js';
import { SCRIPT_NAMES } from '../../src/redis/scripts.js';
import { createStockStore } from '../../src/redis/stock-store.js';
import { until } from '../chaos/harness/wait.js';
import { redisServerOrSkip } from '../helpers/private-redis.js';
import { startSentinelRedis } from '../helpers/redis-sentinel.js';
import { batchOf, purchasesOf, saleOf } from '../helpers/sales.js';
import { prepareSecureRedis, type SecureRedis } from '../helpers/secure-redis.js';
import { silentLog } from '../helpers/silent-log.js';

const TIMES = { replyTimeoutMs: 3000, connectTimeoutMs: 2000 };

describe('Redis with sentinels or as a cluster, over TLS with the documented rights', () => {
  let secure: SecureRedis;
  before(async function () {
    redisServerOrSkip(this);
    secure = await prepareSecureRedis();
  });
  after(() => secure?.remove());

  /** Warms and opens a sale, then takes units of it. */
  async function sell(connection: RedisConnection): Promise<DeductVerdict['outcome']> {
    const sale = saleOf({ stock: 10, limitPerBuyer: 10 });
    const sales = createSaleStore(connection);
    await sales.warm(sale);
    await sales.setState(sale, 'open');
    return (await createStockStore(connection, silentLog).deduct(batchOf(sale, purchasesOf('ann', 'bob')))).outcome;
  }

  async function isChecked(connection: RedisConnection): Promise<void> {
    await until('its scripts are loaded', async () => (await connection.scriptsLoaded()) === SCRIPT_NAMES.length);
    expect((await probeRedis(connection)).ok).to.equal(true);
    expect(await findRedisMisconfiguration(connection)).to.deep.equal([
      // these servers persist nothing on purpose
      'appendonly is no: a restart loses purchases that MySQL does not have. Set it to yes.',
    ]);
  }

  it('follows the new master that the sentinels name after the first master dies', async () => {
    const sentinel = await startSentinelRedis(secure);
    const connection = await connectRedis({ url: sentinel.url, ...secure.options, ...TIMES }, silentLog);
    try {
      await isChecked(connection);
      expect(await sell(connection)).to.equal('deducted');
      await sentinel.master.stop();
      const portNow = (): number => (connection.masters()[0] as Redis).stream?.remotePort as number;
      await until('it is at the other one', async () => {
        await connection.redis.get('sk:any');
        return portNow() === sentinel.replica.port;
      });
      // soon after a fail-over, another reply may be lost, and its purchase be undecided
      const sells = async (): Promise<boolean> => (await sell(connection)) === 'deducted';
      await until('it sells there', sells);
    } finally {
      await connection.close();
      await sentinel.stop();
    }
  });

  it('names, within seconds, sentinels that are untrusted or refuse the login', async () => {
    const sentinel = await startSentinelRedis(secure);
    const failure = async (more: object): Promise<[string, boolean]> => {
      const startedMs = performance.now();
      const options = { url: sentinel.url, ...secure.options, ...TIMES, ...more };
      const message = await connectRedis(options, silentLog).then(
        async (connection) => (await connection.close(), 'connected'),
        (error: Error) => error.message,
      );
      return [message, performance.now() - startedMs < 8_000];
    };
    try {
      const [distrusted, soon] = await failure({ tlsCa: () => '' });
      expect(distrusted).to.match(
        /^Redis at stock of the sentinels \S+ has a certificate of an authority that this program does not trust/,
      );
      expect(soon).to.equal(true);
      const [unknown, soonToo] = await failure({ sentinelPassword: () => 'wrong' });
      expect(unknown).to.match(/^Redis at stock of the sentinels \S+ refuses the login: .*WRONGPASS/);
      expect(soonToo).to.equal(true);
    } finally {
      await sentinel.stop();
    }
  });
});

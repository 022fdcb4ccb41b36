import { expect } from 'chai';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { OperationalError } from '../../src/core/errors.js';
import { createReadiness } from '../../src/process/servers.js';
import type { MysqlPool } from '../../src/mysql/pool.js';
import type { ClockWatch } from '../../src/orders/clock-watch.js';
import { connectRedis } from '../../src/redis/connection.js';
import { until } from '../chaos/harness/wait.js';
import { redisServerOrSkip, startPrivateRedis } from '../helpers/private-redis.js';
import { silentLog } from '../helpers/silent-log.js';
import { openTestStack, type TestStack } from '../helpers/stack.js';
import { partial } from '../helpers/partial.js';

describe('worker readiness', () => {
  let stack: TestStack;
  let broker: Http2Server;
  before(async () => {
    stack = await openTestStack();
    broker = createServer();
    await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    broker?.close();
    await stack?.close();
  });

  /** @returns the failed dependencies by name, or null if the worker is ready */
  async function complaints(
    mysql: Partial<Pick<MysqlPool, 'probe' | 'writeRefusal'>> = {},
    problem: string | null = null,
    clocks?: ClockWatch,
  ): Promise<Record<string, string> | null> {
    const { ready, dependencies } = await createReadiness({
      redis: stack.redis,
      mysql: { probe: async () => undefined, writeRefusal: () => null, ...mysql } as MysqlPool,
      endpoint: `127.0.0.1:${(broker.address() as AddressInfo).port}`,
      minter: partial({ problem: () => problem }),
      ...(clocks && { clocks }),
    })();
    const bad = dependencies.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail] as const);
    return ready ? null : Object.fromEntries(bad);
  }

  it('is ready when all dependencies answer', async () => {
    expect(await complaints()).to.equal(null);
  });

  it('is not ready when MySQL refuses writes, and names MySQL with the reason [L3]', async () => {
    const why = 'MySQL refuses writes because it has no space. Check its disk.';
    expect(await complaints({ writeRefusal: () => why })).to.deep.equal({ mysql: why });
  });

  it('is not ready without order ids, because no batch could be written [D8]', async () => {
    const why = 'the clock was set back; no order id for another 3600000 ms.';
    expect(await complaints({}, why)).to.deep.equal({ 'order ids': why });
  });

  it('is not ready while the clock of a server differs, and names it [D10]', async () => {
    const why = 'the clock of MySQL is 2001 ms ahead of the clock of this machine';
    expect(await complaints({}, null, partial<ClockWatch>({ problem: why }))).to.deep.equal({ clocks: why });
    expect(await complaints({}, null, partial<ClockWatch>({ problem: null }))).to.equal(null);
  });

  it('answers while Redis, MySQL and the broker hang, and names each of them [R8, D1]', async function () {
    const redis = await startPrivateRedis(redisServerOrSkip(this));
    const patience = { replyTimeoutMs: 600_000, connectTimeoutMs: 600_000 };
    const connection = await connectRedis({ url: redis.url, ...patience }, silentLog);
    let hangs = false;
    const probe = (): Promise<void> => (hangs ? new Promise(() => undefined) : Promise.resolve());
    const ready = createReadiness({
      redis: connection,
      mysql: { probe, writeRefusal: () => null } as Partial<MysqlPool> as MysqlPool,
      endpoint: '192.0.2.1:8081', // an address for documentation, where no server answers
    });
    try {
      const named = async () =>
        (await ready()).dependencies.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`);
      expect((await named()).map((problem) => problem.split(':')[0])).to.deep.equal(['rocketmq']);
      redis.signal('SIGSTOP');
      hangs = true;
      await until('Redis and MySQL are named', async () => {
        const problems = (await named()).filter((problem) => !problem.startsWith('rocketmq'));
        return (
          problems.length === 2 &&
          ['redis', 'mysql'].every((name, at) =>
            new RegExp(`^${name}: no answer within 800 ms; last good answer: [\\d.]+ s ago$`).test(problems[at] ?? ''),
          )
        );
      });
    } finally {
      redis.signal('SIGCONT');
      connection.redis.disconnect();
      await redis.stop();
    }
  });

  it('asks a server once for many concurrent requests', async () => {
    let asked = 0;
    const ready = createReadiness({
      redis: stack.redis,
      mysql: { probe: async () => void asked++, writeRefusal: () => null } as Partial<MysqlPool> as MysqlPool,
      endpoint: 'nowhere',
    });
    await Promise.all(Array.from({ length: 20 }, ready));
    expect(asked).to.equal(1);
  });

  it('names MySQL with its error when MySQL does not answer [D1]', async () => {
    const probe = () => Promise.reject(new OperationalError('mysql', 'gone', { retryable: true }));
    expect(Object.keys((await complaints({ probe })) ?? {})).to.deep.equal(['mysql']);
  });
});

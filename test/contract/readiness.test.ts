import { expect } from 'chai';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { OperationalError } from '../../src/core/errors.js';
import { createReadiness } from '../../src/process/servers.js';
import type { MysqlPool } from '../../src/mysql/pool.js';
import { openTestStack, type TestStack } from '../helpers/stack.js';
import { partial } from '../helpers/partial.js';

describe('worker readiness', () => {
  let stack: TestStack;
  let broker: Server;
  before(async () => {
    stack = await openTestStack();
    broker = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => broker.listen(0, '127.0.0.1', resolve));
  });
  after(async () => {
    broker?.close();
    await stack?.close();
  });

  /** @returns the failed dependencies by name, or null when the worker is ready */
  async function complaints(
    mysql: Partial<Pick<MysqlPool, 'probe' | 'writeRefusal'>> = {},
    problem: string | null = null,
  ): Promise<Record<string, string> | null> {
    const { ready, dependencies } = await createReadiness({
      redis: stack.redis,
      mysql: { probe: async () => undefined, writeRefusal: () => null, ...mysql } as MysqlPool,
      endpoint: `127.0.0.1:${(broker.address() as AddressInfo).port}`,
      minter: partial({ problem: () => problem }),
    })();
    const bad = dependencies.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail] as const);
    return ready ? null : Object.fromEntries(bad);
  }

  it('is ready when all dependencies answer', async () => {
    expect(await complaints()).to.equal(null);
  });

  it('is not ready when MySQL refuses writes, and names MySQL with the reason [L3]', async () => {
    const why = 'MySQL refuses writes for want of space: is its disk full?';
    expect(await complaints({ writeRefusal: () => why })).to.deep.equal({ mysql: why });
  });

  it('is not ready without order ids, because no batch could be written [D8]', async () => {
    const why = 'the clock was set back: no order id for another 3600000 ms.';
    expect(await complaints({}, why)).to.deep.equal({ 'order ids': why });
  });

  it('names MySQL with its error when MySQL does not answer [D1]', async () => {
    const probe = () => Promise.reject(new OperationalError('mysql', 'gone', { retryable: true }));
    expect(Object.keys((await complaints({ probe })) ?? {})).to.deep.equal(['mysql']);
  });
});

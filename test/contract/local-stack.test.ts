import { expect } from 'chai';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { connectRedis } from '../../src/redis/connection.js';
import { silentLog } from '../helpers/silent-log.js';
import { stackEnv } from '../helpers/stack-env.js';

/** File permissions of other users of the machine. */
const ofOthers = (path: string): number => statSync(path).mode & 0o077;

describe('contract: local stack on a machine with other users', () => {
  const url = stackEnv().REDIS_URL;
  const { hostname, port, password } = new URL(url);

  it('requires the password for Redis, and hides it from the process arguments', async () => {
    const socket = connect(Number(port), hostname).setEncoding('utf8');
    socket.write('GET anything\r\n');
    expect(String((await once(socket, 'data'))[0])).to.match(/^-NOAUTH /);
    socket.destroy();
    const { redis, close } = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
    const [, pid] = /process_id:(\d+)/.exec(await redis.info('server')) ?? [];
    await close();
    const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    expect(args).to.match(/(redis|valkey)-server/);
    expect(args).not.to.include(password);
  });

  it('lets only the owner read its folder, configuration and append-only file', async () => {
    const { redis, close } = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
    const [, dir] = (await redis.config('GET', 'dir')) as [string, string];
    await close();
    const instance = dirname(dirname(dir));
    expect(ofOthers(instance)).to.equal(0);
    expect(ofOthers(join(instance, 'conf', 'redis.conf'))).to.equal(0);
    const written = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(written).not.to.deep.equal([]);
    for (const { parentPath, name } of written) expect(ofOthers(join(parentPath, name)), name).to.equal(0);
  });
});

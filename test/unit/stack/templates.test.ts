import { expect } from 'chai';
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../src/core/config/load.js';
import { stackEnv } from '../../../deploy/local/stack/settings.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { DEFAULT_PORTS } from '../../../deploy/local/stack/ports.js';
import { removeUnfinishedTcLog } from '../../../deploy/local/stack/servers/mariadb.js';
import { namesrvSpec, proxySpec } from '../../../deploy/local/stack/servers/rocketmq.js';
import { redisSpec } from '../../../deploy/local/stack/servers/redis.js';
import type { Durability, Instance, Tools } from '../../../deploy/local/stack/servers/server-spec.js';
import { DEFAULT_VERSIONS } from '../../../deploy/local/stack/versions.js';
import { useTempFolder } from './temp-folder.js';

const TOOLS: Tools = { java: 'java', artifacts: { rocketmqLib: '/lib', redisServer: '/redis', mysqld: '/mysqld' } };

describe('files of the servers', () => {
  const folder = useTempFolder();
  const instance = (durability: Durability = 'process'): Instance => ({
    paths: stackPaths(folder()),
    ports: DEFAULT_PORTS,
    versions: DEFAULT_VERSIONS,
    durability,
  });
  const conf = (file: string): string => readFileSync(join(folder(), 'conf', file), 'utf8');

  it('bind Redis, broker and name server to loopback, and evict nothing from Redis', async () => {
    for (const spec of [redisSpec, namesrvSpec, proxySpec]) await spec(instance()).prepare(TOOLS);
    const lines = ['redis.conf', 'broker.conf', 'namesrv.conf'].flatMap((file) => conf(file).split('\n'));
    expect(lines).to.include.members(['bind 127.0.0.1', 'maxmemory-policy noeviction', 'brokerIP1=127.0.0.1']);
    expect(lines.filter((line) => line === 'bindAddress=127.0.0.1')).to.have.length(2);
  });

  it('flush before they answer if answers must survive the loss of a host', async () => {
    const flushed = async (durability: Durability): Promise<string[]> => {
      await Promise.all([
        redisSpec(instance(durability)).prepare(TOOLS),
        proxySpec(instance(durability)).prepare(TOOLS),
      ]);
      const settings = `${conf('redis.conf')}\n${conf('broker.conf')}`.split('\n');
      return settings.filter((line) => /^(appendfsync|flushDiskType)\b/.test(line));
    };
    expect(await flushed('process')).to.deep.equal(['appendfsync everysec', 'flushDiskType=ASYNC_FLUSH']);
    expect(await flushed('host')).to.deep.equal(['appendfsync always', 'flushDiskType=SYNC_FLUSH']);
  });

  it('check back for a half message for at least an hour (protocol rule 2)', async () => {
    await proxySpec(instance()).prepare(TOOLS);
    const value = (key: string): number => Number(new RegExp(`^${key}=(\\d+)$`, 'm').exec(conf('broker.conf'))?.[1]);
    expect(value('transactionCheckInterval') * value('transactionCheckMax')).to.be.at.least(3_600_000);
    // At transactionOpBatchInterval or below, messages would arrive twice.
    expect(value('transactionCheckInterval')).to.be.above(3_000);
  });
});

describe('first start of MariaDB', () => {
  const folder = useTempFolder();

  it('removes a tc.log that was never finished [L3, L2]', () => {
    const path = join(folder(), 'tc.log');
    removeUnfinishedTcLog(folder()); // a missing file is fine
    const finished = Buffer.concat([Buffer.from([254, 0x23, 0x05, 0x74]), Buffer.alloc(24 * 1024 - 4)]);
    writeFileSync(path, finished);
    removeUnfinishedTcLog(folder());
    expect(existsSync(path), 'finished').to.equal(true);
    truncateSync(path, 8192);
    removeUnfinishedTcLog(folder());
    expect(existsSync(path), 'too short').to.equal(false);
    writeFileSync(path, Buffer.alloc(24 * 1024));
    removeUnfinishedTcLog(folder());
    expect(existsSync(path), 'without its mark').to.equal(false);
  });
});

describe('environment of an instance', () => {
  const env = stackEnv(DEFAULT_PORTS, { mysqlPassword: 'p-_w', jwtSecret: 's-_t' });

  it('has different keys and passwords for each use, and keeps them at every start', () => {
    const again = stackEnv(DEFAULT_PORTS, { mysqlPassword: 'p-_w', jwtSecret: 's-_t' });
    const other = stackEnv(DEFAULT_PORTS, { mysqlPassword: 'p-_w', jwtSecret: 'another' });
    const { admission, messages, payment } = loadConfig(['admission', 'messages', 'payment'], { ...env });
    expect(payment.webhookSecret).to.equal(again.PAYMENT_WEBHOOK_SECRET);
    const keys = [messages.keys, admission.signKeys, admission.sealKeys];
    expect(keys).to.deep.equal([again.MESSAGE_KEYS, again.ADMISSION_SIGN_KEYS, again.ADMISSION_SEAL_KEYS]);
    expect(again.REDIS_URL).to.equal(env.REDIS_URL);
    const passwords = [env, other].map(({ REDIS_URL }) => new URL(REDIS_URL).password);
    const all = [...keys, other.MESSAGE_KEYS, other.ADMISSION_SIGN_KEYS, other.ADMISSION_SEAL_KEYS];
    const ofBroker = [env, again, other].map(({ ROCKETMQ_ACCESS_SECRET }) => ROCKETMQ_ACCESS_SECRET);
    const ofWebhook = [payment.webhookSecret, other.PAYMENT_WEBHOOK_SECRET];
    const secrets = [...all.map((key) => key.slice('local:'.length)), ...passwords, ...ofBroker, ...ofWebhook];
    expect(new Set(secrets).size).to.equal(12);
  });
});

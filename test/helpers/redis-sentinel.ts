import { Redis } from 'ioredis';
import { redisServerBinary, startPrivateRedis, type PrivateRedis } from './private-redis.js';
import type { SecureRedis } from './secure-redis.js';
import { until } from '../chaos/harness/wait.js';

const MASTER_NAME = 'stock';
/** Silence after which a sentinel declares a master down. A live but busy master may be silent for a second. */
const DOWN_AFTER_MS = 2_000;

/** A master, its replica, and a sentinel that promotes the replica when the master is down. */
export interface SentinelRedis {
  /** Value for REDIS_URL. */
  readonly url: string;
  readonly master: PrivateRedis;
  readonly replica: PrivateRedis;
  /** Kills all servers. */
  stop(): Promise<void>;
}

/**
 * @param secure for servers and a sentinel that only accept TLS; the sentinel has the same users
 * @throws if the sentinel does not see both servers in time
 */
export async function startSentinelRedis(secure: SecureRedis | null = null): Promise<SentinelRedis> {
  const binary = redisServerBinary();
  if (binary === null) throw new Error('no redis-server to start: run `npm start` once');
  const args = secure?.args ?? [];
  const operator = secure?.operator;
  const master = await startPrivateRedis(binary, { args, secure: operator });
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'];
  const replica = await startPrivateRedis(binary, { args: [...args, ...replicaOf], secure: operator });
  const config = [
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 10000`,
    ...(operator === undefined
      ? []
      : [
          `sentinel auth-user ${MASTER_NAME} ${operator.user}`,
          `sentinel auth-pass ${MASTER_NAME} ${operator.password}`,
        ]),
  ];
  const sentinel = await startPrivateRedis(binary, {
    config: config.join('\n'),
    args: [...(secure?.sentinelArgs ?? []), '--sentinel'],
    secure: operator,
  });
  const login = secure === null ? {} : { username: secure.operator.user, password: secure.operator.password };
  const admin = new Redis({
    host: '127.0.0.1',
    port: sentinel.port,
    ...login,
    ...(secure === null ? {} : { tls: secure.tls }),
  });
  const stop = async (): Promise<void> => {
    admin.disconnect();
    await Promise.all([sentinel, replica, master].map((server) => server.stop()));
  };
  try {
    await until('the sentinel could promote the replica', async () => {
      const [info] = (await admin.call('SENTINEL', 'REPLICAS', MASTER_NAME)) as string[][];
      return info?.[(info?.indexOf('master-link-status') ?? -1) + 1] === 'ok';
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const scheme = secure === null ? 'redis' : 'rediss';
  const user = secure === null ? '' : 'seckill@';
  return { url: `${scheme}+sentinel://${user}127.0.0.1:${sentinel.port}/${MASTER_NAME}`, master, replica, stop };
}

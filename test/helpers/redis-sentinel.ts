import { Redis } from 'ioredis';
import { redisServerBinary, startPrivateRedis, type PrivateRedis } from './private-redis.js';
import { until } from '../chaos/harness/wait.js';

const MASTER_NAME = 'stock';
/** A sentinel declares a master down that is silent for so long. */
const DOWN_AFTER_MS = 500;
const READY_TIMEOUT_MS = 60_000;

/** A master, its replica, and a sentinel that promotes the replica when the master is down. */
export interface SentinelRedis {
  /** As REDIS_URL. */
  readonly url: string;
  readonly master: PrivateRedis;
  readonly replica: PrivateRedis;
  /** Kills all servers. */
  stop(): Promise<void>;
}

/** @throws when the sentinel does not see both in time */
export async function startSentinelRedis(): Promise<SentinelRedis> {
  const binary = redisServerBinary();
  if (binary === null) throw new Error('no redis-server to start: run `npm start` once');
  const master = await startPrivateRedis(binary);
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'];
  const replica = await startPrivateRedis(binary, { args: replicaOf });
  const config = [
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 10000`,
  ];
  const sentinel = await startPrivateRedis(binary, { config: config.join('\n'), args: ['--sentinel'] });
  const admin = new Redis({ host: '127.0.0.1', port: sentinel.port });
  const stop = async (): Promise<void> => {
    admin.disconnect();
    await Promise.all([sentinel, replica, master].map((server) => server.stop()));
  };
  try {
    await until(
      'the sentinel could promote the replica',
      async () => {
        const [info] = (await admin.call('SENTINEL', 'REPLICAS', MASTER_NAME)) as string[][];
        return info?.[(info?.indexOf('master-link-status') ?? -1) + 1] === 'ok';
      },
      READY_TIMEOUT_MS,
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `redis+sentinel://127.0.0.1:${sentinel.port}/${MASTER_NAME}`, master, replica, stop };
}

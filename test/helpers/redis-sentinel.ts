import { Redis } from 'ioredis';
import { redisServerBinary, startPrivateRedis, type PrivateRedis } from './private-redis.js';
import { until } from '../chaos/harness/wait.js';

const MASTER_NAME = 'stock';
/** A sentinel takes a master that is silent for so long for dead. */
const DOWN_AFTER_MS = 500;
const READY_TIMEOUT_MS = 60_000;

/** A master with a replica of the test's own, and a sentinel that puts the replica in its place. */
export interface WatchedRedis {
  /** As REDIS_URL. */
  readonly url: string;
  readonly master: PrivateRedis;
  readonly replica: PrivateRedis;
  /** Kills all of it. */
  stop(): Promise<void>;
}

/** @throws when the sentinel does not see both in time */
export async function startWatchedRedis(): Promise<WatchedRedis> {
  const binary = redisServerBinary();
  if (binary === null) throw new Error('no Redis is there to be watched: run `npm start` once');
  const master = await startPrivateRedis(binary);
  const replicaOf = ['--replicaof', '127.0.0.1', String(master.port), '--repl-diskless-sync-delay', '0'];
  const replica = await startPrivateRedis(binary, { args: replicaOf });
  const settings = [
    `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${MASTER_NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${MASTER_NAME} 10000`,
  ];
  const sentinel = await startPrivateRedis(binary, { settings: settings.join('\n'), args: ['--sentinel'] });
  const admin = new Redis({ host: '127.0.0.1', port: sentinel.port });
  const stop = async (): Promise<void> => {
    admin.disconnect();
    await Promise.all([sentinel, replica, master].map((server) => server.stop()));
  };
  try {
    await until(
      'the sentinel could put the replica in its place',
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

import { Redis } from 'ioredis';
import { redisServerBinary, startPrivateRedis, type PrivateRedis } from './private-redis.js';
import type { SecureRedis } from './secure-redis.js';
import { until } from '../chaos/harness/wait.js';

const MASTERS = 3;
const SLOTS = 16_384;

/** A Redis cluster for a single test file. */
export interface RedisCluster {
  /** Value for REDIS_URL. */
  readonly url: string;
  readonly servers: readonly PrivateRedis[];
  /** A connection to each server, in the order of `servers`. */
  readonly admin: readonly Redis[];
  /** Returns the index in `servers` of the server with the slot of a key. */
  ownerOf(key: string): Promise<number>;
  /** Kills all servers. */
  stop(): Promise<void>;
}

/**
 * Starts three masters and joins them to a cluster.
 * @param more additional arguments of each server
 * @param secure for servers that only accept TLS
 * @throws if the cluster is not formed in time
 */
export async function startRedisCluster(
  more: readonly string[] = [],
  secure: SecureRedis | null = null,
): Promise<RedisCluster> {
  const binary = redisServerBinary();
  if (binary === null) throw new Error('no redis-server to start: run `npm start` once');
  const args = [...(secure?.args ?? []), '--cluster-enabled', 'yes', '--cluster-node-timeout', '5000', ...more];
  const options = { args, secure: secure?.operator };
  const servers = await Promise.all(Array.from({ length: MASTERS }, () => startPrivateRedis(binary, options)));
  const login =
    secure === null ? {} : { username: secure.operator.user, password: secure.operator.password, tls: secure.tls };
  const admin = servers.map(({ port }) => {
    const redis = new Redis({ host: '127.0.0.1', port, ...login });
    return redis.on('error', () => undefined); // a test may kill its server
  });
  const stop = async (): Promise<void> => {
    for (const one of admin) one.disconnect();
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    await form(servers, admin);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    url: `${secure === null ? 'redis+cluster://' : 'rediss+cluster://seckill@'}${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    servers,
    admin,
    stop,
    async ownerOf(key): Promise<number> {
      const [asked] = admin as [Redis];
      const slot = Number(await asked.cluster('KEYSLOT', key));
      const ranges = await asked.cluster('SLOTS');
      const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2]?.[1];
      return servers.findIndex((server) => server.port === port);
    },
  };
}

/** Opens a test world on its own cluster, which ends with the world. */
export async function onRedisCluster<World extends { close(): Promise<void> }>(
  open: (url: string) => Promise<World>,
): Promise<World> {
  const cluster = await startRedisCluster();
  const world = await open(cluster.url).catch(async (error: unknown) => {
    await cluster.stop();
    throw error;
  });
  return { ...world, close: () => world.close().finally(() => cluster.stop()) };
}

async function form(servers: readonly PrivateRedis[], admin: readonly Redis[]): Promise<void> {
  const share = Math.ceil(SLOTS / MASTERS);
  for (const [index, one] of admin.entries()) {
    const length = Math.min(share, SLOTS - index * share);
    await one.call('CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1));
    await one.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length }, (_, slot) => String(index * share + slot)));
  }
  for (const { port } of servers.slice(1)) await admin[0]?.call('CLUSTER', 'MEET', '127.0.0.1', String(port));
  await until('every server knows the whole cluster', async () => {
    const infos = await Promise.all(admin.map((one) => one.call('CLUSTER', 'INFO') as Promise<string>));
    return infos.every((info) => /cluster_state:ok/.test(info) && info.includes(`cluster_known_nodes:${MASTERS}`));
  });
}

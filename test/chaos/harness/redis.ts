import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readlinkSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../../deploy/local/stack/ports.js';
import { silentLog } from '../../helpers/silent-log.js';
import type { BucketStatus } from '../../../src/core/ports/repair-stores.js';
import { connectRedis, type RedisConnection } from '../../../src/redis/connection.js';
import { createRepairStore } from '../../../src/redis/repair-store.js';
import type { ScenarioContext } from '../context.js';
import { expectAtLeast } from './expect.js';
import type { StackControls } from './stack-controls.js';
import { until } from './wait.js';

// Redis restarts, loses writes that it had confirmed, or fails over. For scenarios that run alone.

/** Kills a server and starts it again with its data. Returns once our own connections work again. */
export async function restartRedis({ servers, redis }: StackControls): Promise<void> {
  const server = servers.server('redis');
  await server.stop({ signal: 'SIGKILL' });
  await server.start();
  await server.waitReady();
  await until('we are connected again', async () => (await redis.redis.ping()) === 'PONG');
}

/** Returns the size of the append-only file of Redis, in bytes, once it contains all that Redis has confirmed. */
export async function endOfAof({ redis: { redis }, servers }: StackControls): Promise<number> {
  await until('the log is written', async () => /aof_buffer_length:0\r/.test(await redis.info('persistence')));
  return statSync(logFile(servers.dir)).size;
}

/**
 * Kills Redis and starts it again without what it wrote after `keepBytes` of its append-only file.
 * @returns how many bytes are lost
 */
export async function loseWritesAfter(stack: StackControls, keepBytes: number): Promise<number> {
  const server = stack.servers.server('redis');
  await server.stop({ signal: 'SIGKILL' });
  const file = logFile(stack.servers.dir);
  const lost = statSync(file).size - keepBytes;
  expectAtLeast(lost, 1, 'bytes of the log after the cut'); // a rewritten file is shorter
  truncateSync(file, keepBytes);
  await server.start();
  await server.waitReady();
  await until('we are connected again', async () => (await stack.redis.redis.ping()) === 'PONG');
  return lost;
}

/**
 * Calls `loseWritesAfter` and records the proof. Stops the keepers of the scenario, which would repair before the loss
 * is observed.
 */
export async function observeLostWrites(
  context: ScenarioContext,
  keepBytes: number,
  what: string,
  proof: () => Promise<boolean>,
): Promise<void> {
  const keepers = context.programs.running.filter(({ name }) => name === 'keeper');
  for (const keeper of keepers) keeper.signal('SIGSTOP');
  try {
    await loseWritesAfter(context.stack, keepBytes);
    await context.observed(what, proof);
  } finally {
    for (const keeper of keepers) keeper.signal('SIGCONT');
  }
}

/** Reads state, epoch and stamp of the only bucket of a sale, as a repair does. */
export async function bucketStatusOf({ redis }: StackControls, saleId: string): Promise<BucketStatus> {
  const [status] = await createRepairStore(redis).statusOf([{ saleId, bucket: 0 }]);
  return status as BucketStatus;
}

/** Waits until a sale is rebuilt under a later epoch. @returns its epoch */
export async function untilRebuilt(stack: StackControls, saleId: string, afterEpoch = 1): Promise<number> {
  let found = 0;
  const isRebuilt = async (): Promise<boolean> => {
    const { state, epoch, sameServer } = await bucketStatusOf(stack, saleId);
    found = epoch;
    return state !== null && state !== 'repair' && sameServer && epoch > afterEpoch;
  };
  await until(`sale ${saleId} is rebuilt`, isRebuilt);
  return found;
}

/** Redis 7 stores its append-only file in parts, Redis 6 in one file. */
function logFile(stackDir: string): string {
  const dir = stackPaths(stackDir).data('redis');
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  const file = files.find((name) => name.endsWith('.incr.aof')) ?? files.find((name) => name.endsWith('.aof'));
  if (file === undefined) throw new Error(`no log in ${dir}: ${files.join(', ')}`);
  return join(dir, file);
}

/** A second Redis next to the Redis of the stack. Its scenario stops it. */
export interface SpareRedis {
  readonly host: string;
  readonly port: number;
  readonly redis: RedisConnection;
  stop(): Promise<void>;
}

/** Starts a Redis with the program and the settings of the Redis of the stack. */
export async function startSpareRedis({ servers, env }: StackControls): Promise<SpareRedis> {
  const binary = readlinkSync(`/proc/${servers.server('redis').pid()}/exe`);
  const dir = join(servers.dir, 'data', 'redis-spare');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const [host, port] = ['127.0.0.1', pickFreePort()];
  const { username, password } = new URL(env.REDIS_URL);
  const conf = join(dir, 'spare.conf');
  writeFileSync(conf, `requirepass ${password}\nmasterauth ${password}\n`, { mode: 0o600 });
  const where = ['--bind', host, '--port', String(port), '--dir', dir];
  const keeps = ['--save', '', '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'];
  const server = spawn(binary, [conf, ...where, ...keeps], { stdio: 'ignore' });
  const options = {
    url: `redis://${username}:${password}@${host}:${port}`,
    replyTimeoutMs: 2000,
    connectTimeoutMs: 2000,
  };
  let redis: RedisConnection | undefined;
  const connected = async (): Promise<boolean> => ((redis = await connectRedis(options, silentLog)), true);
  try {
    await until('the spare Redis answers', connected);
  } catch (error) {
    await kill(server);
    throw error;
  }
  const connection = redis as unknown as RedisConnection;
  return {
    host,
    port,
    redis: connection,
    async stop() {
      await connection.close();
      await kill(server);
    },
  };
}

/** Makes a server a replica, and waits until the replica has caught up. */
export async function replicate({ masters }: RedisConnection, host: string, port: number): Promise<void> {
  const [server] = masters();
  await server?.replicaof(host, port);
  const isInStep = async (): Promise<boolean> => {
    const info = (await server?.info('replication')) ?? '';
    return /master_link_status:up/.test(info) && /master_sync_in_progress:0/.test(info);
  };
  await until('the replica is in step', isInStep);
}

/** Turns a replica into a primary. */
export async function promote({ masters }: RedisConnection): Promise<void> {
  await masters()[0]?.replicaof('NO', 'ONE');
}

async function kill(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  server.kill('SIGKILL');
  await ended;
}

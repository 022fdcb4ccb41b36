import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readlinkSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { silentLog } from '../../../src/core/ports/log.js';
import { connectRedis, type RedisConnection } from '../../../src/redis/connection.js';
import type { StackHands } from './stack-hands.js';
import { until } from './until.js';

const START_TIMEOUT_MS = 15_000;
const SYNC_TIMEOUT_MS = 30_000;

/** A second Redis beside the one of the stack, for rows that run alone; it is gone after its row. */
export interface SpareRedis {
  readonly host: string;
  readonly port: number;
  readonly redis: RedisConnection;
  stop(): Promise<void>;
}

/** Starts one with the program and the settings of the Redis of the stack. */
export async function startSpareRedis({ servers }: StackHands): Promise<SpareRedis> {
  const binary = readlinkSync(`/proc/${servers.server('redis').pid()}/exe`);
  const dir = join(servers.dir, 'data', 'redis-spare');
  rmSync(dir, { recursive: true, force: true });
  mkdirSync(dir, { recursive: true });
  const [host, port] = ['127.0.0.1', await freePort()];
  const where = ['--bind', host, '--port', String(port), '--dir', dir];
  const keeps = ['--save', '', '--appendonly', 'yes', '--maxmemory-policy', 'noeviction'];
  const server = spawn(binary, [...where, ...keeps], { stdio: 'ignore' });
  const options = { url: `redis://${host}:${port}`, replyTimeoutMs: 2000, connectTimeoutMs: 2000 };
  let redis: RedisConnection | undefined;
  const connected = async (): Promise<boolean> => ((redis = await connectRedis(options, silentLog)), true);
  try {
    await until('the spare Redis answers', connected, START_TIMEOUT_MS);
  } catch (error) {
    await kill(server);
    throw error;
  }
  const connection = redis as unknown as RedisConnection;
  return {
    ...{ host, port, redis: connection },
    async stop() {
      await connection.close();
      await kill(server);
    },
  };
}

/** Makes a server the replica of another one, and waits until it has all that the other one had. */
export async function replicate({ masters }: RedisConnection, host: string, port: number): Promise<void> {
  const [server] = masters();
  await server?.replicaof(host, port);
  const isInStep = async (): Promise<boolean> => {
    const told = (await server?.info('replication')) ?? '';
    return /master_link_status:up/.test(told) && /master_sync_in_progress:0/.test(told);
  };
  await until('the replica is in step', isInStep, SYNC_TIMEOUT_MS);
}

/** Makes a replica a server of its own again. */
export async function promote({ masters }: RedisConnection): Promise<void> {
  await masters()[0]?.replicaof('NO', 'ONE');
}

async function kill(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  server.kill('SIGKILL');
  await ended;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

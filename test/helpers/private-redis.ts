import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisServer } from '../../deploy/local/stack/artifacts.js';
import type { CertificateFiles } from '../../deploy/local/stack/certificates.js';
import { GrantedTime } from '../../deploy/local/stack/granted-time.js';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { probeRedis } from '../../deploy/local/stack/probes.js';
import { versionsIn } from '../../deploy/local/stack/versions.js';
import { GRANTED_MS, until } from '../chaos/harness/wait.js';

/** A Redis server for a single test file. */
export interface PrivateRedis {
  readonly url: string;
  readonly port: number;
  readonly dir: string;
  /** SIGSTOP stalls the server and returns when it has stopped. SIGCONT lets it continue. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** Kills it. Safe to call twice. */
  stop(): Promise<void>;
}

export interface PrivateRedisOptions {
  /** Additional arguments. */
  readonly args?: readonly string[];
  /** Content of its configuration file, which it may rewrite. A sentinel needs a file. */
  readonly config?: string;
  /** Makes it accept only TLS with a client certificate. */
  readonly secure?: SecureParts;
}

/** Settings of a server that only accepts TLS. */
export interface SecureParts {
  readonly certificates: CertificateFiles;
  /** A user with all rights, for the readiness check. */
  readonly user: string;
  readonly password: string;
}

/** Returns the Redis program of the local stack, or null if there is none. */
export const redisServerBinary = (): string | null =>
  findRedisServer(DEFAULT_ARTIFACTS_DIR, process.env, versionsIn(process.env).redis);

/** Returns the Redis program, or skips the suite in its `before` and says so. */
export function redisServerOrSkip(suite: Pick<Mocha.Context, 'skip'>): string {
  const binary = redisServerBinary();
  if (binary !== null) return binary;
  console.log('    skipped: no redis-server to start; name one with SECKILL_REDIS_SERVER');
  return suite.skip();
}

const WITHOUT_PERSISTENCE = ['--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction'];
// a kill would lose writes that `everysec` delays while a slow disk syncs
const APPEND_ONLY = [
  '--save',
  '',
  '--appendonly',
  'yes',
  '--appendfsync',
  'always',
  '--maxmemory-policy',
  'noeviction',
];

/** Starts a Redis on a free port without persistence, for faults that would disturb other tests. */
export async function startPrivateRedis(
  binary: string,
  { args = [], config, secure }: PrivateRedisOptions = {},
): Promise<PrivateRedis> {
  const place = { ...newPlace(), secure };
  const file = join(place.dir, 'own.conf');
  if (config !== undefined) writeFileSync(file, config);
  const server = await startServer(binary, place, [...(config === undefined ? WITHOUT_PERSISTENCE : [file]), ...args]);
  return controlsOf(place, () => server);
}

export interface DurableRedis extends PrivateRedis {
  /**
   * Kills it and restarts it on its append-only log.
   * @param cutBytes number of bytes lost at the end of the log
   */
  restart(cutBytes?: number): Promise<void>;
}

/** Starts a Redis with an append-only log, which survives a restart. */
export async function startDurableRedis(binary: string): Promise<DurableRedis> {
  const place = newPlace();
  let server = await startServer(binary, place, APPEND_ONLY);
  return {
    ...controlsOf(place, () => server),
    async restart(cutBytes = 0): Promise<void> {
      await kill(server);
      if (cutBytes > 0) cutLog(place.dir, cutBytes);
      server = await startServer(binary, place, APPEND_ONLY);
    },
  };
}

interface Place {
  readonly port: number;
  readonly dir: string;
  readonly secure?: SecureParts | undefined;
}

/** Offset of the cluster bus port. */
const BUS_OFFSET = 10_000;

function newPlace(): Place {
  return { port: pickFreePort([BUS_OFFSET]), dir: mkdtempSync(join(tmpdir(), 'seckill-redis-')) };
}

const controlsOf = (place: Place, server: () => ChildProcess): PrivateRedis => ({
  port: place.port,
  dir: place.dir,
  url: `${place.secure === undefined ? 'redis' : 'rediss'}://127.0.0.1:${place.port}`,
  signal: (name) => {
    server().kill(name);
    if (name === 'SIGSTOP') waitUntilStopped(server().pid as number);
  },
  stop: () => end(server(), place),
});

/** Waits, because a process stops only when it next gets a core, and may answer until then. */
function waitUntilStopped(pid: number): void {
  const time = new GrantedTime();
  while (time.readMs() < GRANTED_MS) {
    const [state] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '';
    if (state === 'T') return;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
  }
  throw new Error(`process ${pid} did not stop`);
}

async function startServer(binary: string, place: Place, options: readonly string[]): Promise<ChildProcess> {
  const { port, dir, secure } = place;
  const listen = secure === undefined ? ['--port', String(port)] : ['--port', '0', '--tls-port', String(port)];
  const where = ['--bind', '127.0.0.1', ...listen, '--dir', dir];
  // a configuration file must be the first argument
  const args = options[0]?.startsWith('--')
    ? [...where, ...options]
    : [options[0] ?? '', ...where, ...options.slice(1)];
  const server = spawn(binary, args, { stdio: 'ignore' });
  const isUp = async (): Promise<boolean> => (await probeRedis(port, secure?.password, secure)) === null;
  try {
    await until(`${binary} answers on port ${port}`, isUp, { everyMs: 20 });
    return server;
  } catch (error) {
    await end(server, place);
    throw error;
  }
}

async function kill(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  server.kill('SIGKILL');
  await ended;
}

async function end(server: ChildProcess, { dir }: Place): Promise<void> {
  await kill(server);
  rmSync(dir, { recursive: true, force: true });
}

/** Cuts the log, which Redis 7 keeps in parts and Redis 6 in one file. */
function cutLog(dir: string, bytes: number): void {
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' });
  const log = files.find((file) => file.endsWith('.incr.aof')) ?? files.find((file) => file.endsWith('.aof'));
  if (log === undefined) throw new Error(`no log in ${dir}: ${files.join(', ')}`);
  truncateSync(join(dir, log), statSync(join(dir, log)).size - bytes);
}

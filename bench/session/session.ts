import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { migrate } from '../../src/mysql/migrate.js';
import type { RedisConnection } from '../../src/redis/connection.js';
import { DEFAULT_ARTIFACTS_DIR } from '../../deploy/local/stack/paths.js';
import { pickFreePort } from '../../deploy/local/stack/ports.js';
import { tryLock } from '../../deploy/local/stack/processes.js';
import type { OnProgress } from '../../deploy/local/stack/progress.js';
import { openStack, type Stack } from '../../deploy/local/stack/stack.js';
import { toolsOnce } from '../../deploy/local/stack/tools.js';
import { versionsIn } from '../../deploy/local/stack/versions.js';
import { BenchError } from '../bench-error.js';
import type { AdmissionKeys } from '../load/credentials.js';
import type { BenchOptions } from '../options.js';
import { build, Program, type ProgramName } from './programs.js';
import { Stores } from './stores.js';

export type Progress = (line: string) => void;

/** Whose CPU is counted, by the names in the report. */
export type ProcessName = ProgramName | 'redis' | 'mariadb' | 'broker';

const PROGRAMS: readonly ProgramName[] = ['api', 'worker', 'keeper'];

/** Otherwise, on running servers, payment deadlines of earlier runs would fall due during a measurement. */
const NOTHING_EXPIRES = { ORDER_PAYMENT_WINDOW_MS: String(24 * 3_600_000) };

/** Keys for signatures and seals, so that the bench can sign for its buyers. They are valid only for this instance. */
const ADMISSION_KEYS = {
  ADMISSION_SIGN_KEYS: `bench:${randomBytes(32).toString('hex')}`,
  ADMISSION_SEAL_KEYS: `bench:${randomBytes(32).toString('hex')}`,
};

/** A running system to measure: the stack instance of the bench, with api, worker and keeper of this checkout. */
export interface Session {
  readonly stack: Stack;
  readonly stores: Stores;
  /** Environment of the programs, without the changes of single scenarios. */
  readonly env: NodeJS.ProcessEnv;
  /** The keys with which the api verifies signatures and seals tokens. */
  readonly admissionKeys: AdmissionKeys;
  /** Folder in the instance for the bench's own files. */
  readonly dir: string;
  /** True if this run started the broker, whose JIT is still cold. */
  readonly brokerIsFresh: boolean;
  readonly signal: AbortSignal;
  readonly progress: Progress;
  program(name: ProgramName): Program;
  /** Stops the programs and starts them with other settings. Programs that were warm are then cold again. */
  restart(changes: NodeJS.ProcessEnv, names?: readonly ProgramName[]): Promise<void>;
  pids(): Record<ProcessName, number>;
  /** @throws BenchError if a program has died */
  assertAlive(): void;
}

export type SessionOptions = Pick<BenchOptions, 'dir' | 'keepStack' | 'durability' | 'replicas'>;

/** Boots everything, runs the work, and stops all that it started, even if the work fails. */
export async function withSession<T>(
  options: SessionOptions,
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const lock = tryLock(join(resolve(options.dir), 'run', 'bench.lock'));
  if ('heldBy' in lock) {
    throw new BenchError(
      `process ${lock.heldBy} is measuring on this stack; wait until it ends, or choose another --dir`,
    );
  }
  try {
    return await withLockedSession(options, { progress, signal }, work);
  } finally {
    lock.release();
  }
}

async function withLockedSession<T>(
  options: SessionOptions,
  { progress, signal }: { readonly progress: Progress; readonly signal: AbortSignal },
  work: (session: Session) => Promise<T>,
): Promise<T> {
  progress('building');
  await build();
  const stack = openStack({
    dir: options.dir,
    ports: 'free',
    durability: options.durability,
    onProgress: stepLines(progress),
  });
  const { started } = await stack.up({ signal });
  const programs = new Map<ProgramName, Program>();
  const replicas = new RedisReplicas();
  let stores: Stores | null = null;
  try {
    const waiting = options.replicas > 0 ? { REDIS_WAIT_REPLICAS: String(options.replicas) } : {};
    const env = {
      ...NOTHING_EXPIRES,
      ...ADMISSION_KEYS,
      TEST_OVERRIDES: 'on',
      ...process.env,
      ...stack.env(),
      LOG_LEVEL: 'warn',
      ...waiting,
    };
    await migrate({ url: stack.env().MYSQL_URL });
    stores = await Stores.open(env);
    await stores.empty();
    await replicas.start(options.replicas, stack.env().REDIS_URL, stores.redis);
    const session = makeSession({
      stack,
      stores,
      programs,
      env,
      signal,
      progress,
      brokerIsFresh: started.includes('proxy'),
    });
    await session.restart({});
    return await work(session);
  } finally {
    progress('stopping all programs and servers');
    await Promise.all([...programs.values()].map((program) => program.stop()));
    await stores?.close();
    await replicas.stop();
    if (!options.keepStack && started.length > 0) await stack.down();
  }
}

type Parts = Pick<Session, 'stack' | 'stores' | 'env' | 'signal' | 'progress' | 'brokerIsFresh'> & {
  readonly programs: Map<ProgramName, Program>;
};

function makeSession({ programs, ...parts }: Parts): Session {
  const { stack, env, signal, progress } = parts;
  const program = (name: ProgramName): Program => programs.get(name) as Program;
  return {
    ...parts,
    admissionKeys: { sign: env.ADMISSION_SIGN_KEYS ?? '', seal: env.ADMISSION_SEAL_KEYS ?? '' },
    dir: join(stack.dir, 'load'),
    program,

    async restart(changes, names = PROGRAMS): Promise<void> {
      await Promise.all(names.map((name) => programs.get(name)?.stop()));
      progress(`starting ${names.join(', ')}${settingsOf(changes)}`);
      const start = async (name: ProgramName): Promise<void> => {
        const logFile = join(stack.dir, 'log', `${name}.log`);
        programs.set(name, await Program.start(name, { env: { ...env, ...changes }, logFile, signal }));
      };
      const failed = (await Promise.allSettled(names.map(start))).find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      progress(`ready: ${names.map((name) => `${name} (pid ${program(name).pid})`).join(', ')}`);
    },

    pids: () => ({
      api: program('api').pid,
      worker: program('worker').pid,
      keeper: program('keeper').pid,
      redis: stack.server('redis').pid() ?? 0,
      mariadb: stack.server('mysql').pid() ?? 0,
      broker: stack.server('proxy').pid() ?? 0,
    }),

    assertAlive: () => programs.forEach((one) => one.assertAlive()),
  };
}

function settingsOf(changes: NodeJS.ProcessEnv): string {
  const pairs = Object.entries(changes).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? '' : ` with ${pairs.join(' ')}`;
}

/** Reports each step of the stack at its end, and the progress of long steps such as downloads. */
const stepLines =
  (progress: Progress): OnProgress =>
  ({ step, state, text }) => {
    if (state === 'done' || state === 'failed' || (state === 'working' && step === 'artifacts'))
      progress(`${step}: ${text}`);
  };

const SYNC_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** Starts replicas of the measured Redis on the same cores. */
class RedisReplicas {
  readonly #children: ChildProcess[] = [];
  readonly #dir = mkdtempSync(join(tmpdir(), 'seckill-replicas-'));

  /** @throws BenchError if they do not follow in time */
  async start(count: number, masterUrl: string, master: RedisConnection): Promise<void> {
    if (count === 0) return;
    const { port: masterPort, password } = new URL(masterUrl);
    const { artifacts } = await toolsOnce(
      DEFAULT_ARTIFACTS_DIR,
      process.env,
      versionsIn(process.env),
      () => undefined,
    )();
    for (let index = 0; index < count; index++) {
      const port = pickFreePort();
      const where = ['--bind', '127.0.0.1', '--port', String(port), '--dir', this.#dir];
      const what = ['--save', '', '--appendonly', 'no', '--dbfilename', `${port}.rdb`];
      const args = [...where, ...what, '--replicaof', '127.0.0.1', masterPort];
      const child = spawn(artifacts.redisServer, ['-', ...args], { stdio: ['pipe', 'ignore', 'ignore'] });
      // not passed as an argument, which every user of the machine could read
      child.stdin.end(`masterauth ${password}\n`);
      this.#children.push(child);
    }
    const untilMs = Date.now() + SYNC_TIMEOUT_MS;
    const online = async (): Promise<number> =>
      ((await master.redis.info('replication')).match(/state=online/g) ?? []).length;
    while ((await online()) < count) {
      if (Date.now() > untilMs) throw new BenchError(`the Redis replicas are not in sync after ${SYNC_TIMEOUT_MS} ms`);
      await sleep(POLL_MS);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(async (child) => {
        const ended = new Promise((resolve) => child.once('exit', resolve));
        if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended;
      }),
    );
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

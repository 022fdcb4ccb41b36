import { chmodSync } from 'node:fs';
import { OperationalError } from '../../../src/core/errors.js';
import { type ApplyOutcome, applyTopics } from '../../../src/rocketmq/admin/apply-topics.js';
import { readTopicLists, type TopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { certificateFiles, ensureCertificates } from './certificates.js';
import { assertDiskSpace, ensureFolder } from './files.js';
import { ManagedServer, type ServerStatus, type StackServer } from './managed-server.js';
import { DEFAULT_ARTIFACTS_DIR, DEFAULT_DIR, stackPaths, type StackPaths } from './paths.js';
import type { StackPorts } from './ports.js';
import { runMqadmin, type MqadminResult } from './mqadmin.js';
import { tryLock } from './processes.js';
import { type OnProgress, runStep } from './progress.js';
import { mysqlSpec } from './servers/mysql.js';
import { redisSpec } from './servers/redis.js';
import { namesrvSpec, proxySpec } from './servers/rocketmq.js';
import type { BrokerTiming, Durability, ServerName, Tools } from './servers/server-spec.js';
import {
  brokerAccessIn,
  ensureSecrets,
  loadPorts,
  loadVersions,
  type PortChoice,
  readSecrets,
  rememberInstance,
  stackEnv,
  type StackEnv,
  timingOf,
  wasSecure,
  writePasswords,
} from './settings.js';
import { explainFileError, StackError } from './stack-error.js';
import { toolsOnce } from './tools.js';
import { assertSameServers, DEFAULT_VERSIONS, type Versions, wantedVersions } from './versions.js';

export interface StackOptions {
  /** Folder of the instance: data, logs, pids, settings. Defaults to `.stack` in the checkout. */
  readonly dir?: string;
  /** Ports at the first start of this folder. Later starts use the remembered ports. Defaults to `default`. */
  readonly ports?: PortChoice;
  /**
   * Servers at the first start of this folder. Later starts use the remembered servers. Defaults to the environment.
   */
  readonly versions?: Partial<Versions>;
  /** Applies to servers that are started from now on. A running server keeps its mode. Defaults to `process`. */
  readonly durability?: Durability;
  /**
   * TLS and access control everywhere, with the instance's own certificates. Defaults to the mode of its last start.
   */
  readonly secure?: boolean | undefined;
  /** Delays of the broker. Defaults to the timing of its last start, at first `production`. */
  readonly timing?: BrokerTiming;
  /**
   * Gives MySQL this server id and a binary log, which the next start without it switches off. Defaults to 1 if WITNESS is
   * on in the environment.
   */
  readonly serverId?: number | undefined;
  /** Folder of downloaded programs, shared by all instances. Defaults to `.stack/artifacts` in the checkout. */
  readonly artifactsDir?: string;
  /** Source of JAVA_HOME, PATH and the choice of servers. Defaults to the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly onProgress?: OnProgress;
}

/** An instance of the local stack: RocketMQ, MySQL and Redis with their own data, on loopback. */
export interface Stack {
  readonly dir: string;
  readonly ports: StackPorts;
  readonly versions: Versions;
  /** Whether its servers only accept TLS. */
  readonly isSecure: boolean;
  /**
   * Unix socket of MySQL, for work that an application may not do. In MariaDB the administrator is the system user who
   * started the stack, without a password. In MySQL it is `root`, with the password of our user.
   */
  readonly mysqlSocket: string;
  /**
   * Starts missing servers and waits until everything serves. Then topics and groups exist too (unless `topics` is
   * false). After a failure, stops the servers that it had started.
   * @throws StackError with one sentence, or the reason of an aborted `signal`
   */
  up(options?: { topics?: boolean; signal?: AbortSignal }): Promise<UpResult>;
  /** Stops our own servers and waits until they are gone. @returns the servers that ran */
  down(options?: DownOptions): Promise<ServerName[]>;
  /** Returns one entry per server, in the order of SERVER_NAMES. Takes at most a few seconds. */
  status(): Promise<ServerStatus[]>;
  /** @throws StackError before the first `up` */
  env(): StackEnv;
  server(name: ServerName): StackServer;
  /** Creates additional topics and groups, e.g. for one test. @throws StackError */
  applyTopics(lists: TopicLists): Promise<ApplyOutcome>;
  /** Runs RocketMQ's admin tool on the broker of this folder. @throws StackError before the first `up` */
  mqadmin(args: readonly string[]): Promise<MqadminResult>;
}

/** MySQL 8.0.15 contains an OpenSSL 1.0.2 that cannot use keys on elliptic curves like ours. */
const NO_TLS =
  'The MySQL 8.0 that the stack brings does not accept TLS certificates; choose another server with --mysql.';

/** Reads an instance folder and changes nothing until `up`. @throws StackError when its files are damaged */
export function openStack(options: StackOptions = {}): Stack {
  const env = options.env ?? process.env;
  const onProgress = options.onProgress ?? (() => undefined);
  const paths = stackPaths(options.dir ?? DEFAULT_DIR);
  const ports = loadPorts(paths.instanceFile, options.ports ?? 'default');
  const remembered = loadVersions(paths, env);
  const wanted = wantedVersions(options.versions ?? {}, env);
  const versions = remembered ?? { ...DEFAULT_VERSIONS, ...wanted };
  const tools = toolsOnce(options.artifactsDir ?? DEFAULT_ARTIFACTS_DIR, env, versions, onProgress);
  const ranSecure = wasSecure(paths.instanceFile);
  const isSecure = options.secure ?? ranSecure;
  const certificates = isSecure ? certificateFiles(paths.dir) : null;
  const timing = options.timing ?? timingOf(paths.instanceFile);
  const { durability = 'process', serverId = (env.WITNESS ?? 'off') === 'off' ? undefined : 1 } = options;
  const instance = { paths, ports, versions, durability, timing, serverId, certificates };
  const servers = [redisSpec(instance), mysqlSpec(instance), namesrvSpec(instance), proxySpec(instance)].map(
    (spec) => new ManagedServer(spec, { ...instance, tools }),
  );

  const apply = async (lists: TopicLists, signal?: AbortSignal): Promise<ApplyOutcome> => {
    try {
      const access = brokerAccessIn(stackEnv(ports, ensureSecrets(paths.secretsFile), certificates));
      const target = { namesrvAddr: `127.0.0.1:${ports.namesrv}`, cluster: null, ...access };
      return await applyTopics(target, lists, signal);
    } catch (error) {
      if (error instanceof OperationalError) throw new StackError(error.message, { cause: error });
      throw error;
    }
  };

  return {
    dir: paths.dir,
    ports,
    versions,
    isSecure,
    mysqlSocket: paths.mysqlSocket,
    up: async ({ topics = true, signal } = {}) => {
      assertSameServers(remembered, wanted, paths.dir);
      if (isSecure && versions.mysql === '8.0') throw new StackError(NO_TLS);
      try {
        return await up(
          {
            paths,
            servers,
            onProgress,
            tools,
            changesTo: isSecure === ranSecure ? null : isSecure ? 'with' : 'without',
            remember: async (isAll) => {
              rememberInstance(paths.instanceFile, { ports, servers: versions, secure: isSecure, timing });
              const secrets = ensureSecrets(paths.secretsFile);
              if (certificates === null) return;
              await ensureCertificates(certificates, isAll);
              writePasswords(certificates, secrets);
            },
            applyTopics: topics ? (abort) => apply(readTopicLists(), abort) : null,
          },
          signal,
        );
      } catch (error) {
        throw explainFileError(error, paths.dir);
      }
    },
    down: (downOptions = {}) => down(servers, onProgress, downOptions),
    status: () => Promise.all(servers.map((server) => server.status())),
    env: () => {
      const secrets = readSecrets(paths.secretsFile);
      if (secrets === null) throw new StackError(`${paths.dir} was never started; run \`npm run stack -- up\` first.`);
      return stackEnv(ports, secrets, certificates);
    },
    server: (name) => {
      const server = servers.find((one) => one.name === name);
      if (server === undefined) throw new StackError(`There is no server ${name as string} in the stack.`);
      return server;
    },
    applyTopics: (lists) => apply(lists),
    mqadmin: async (args) => runMqadmin(await tools(), instance, args),
  };
}

/** Data of an empty instance, 200 MB, and room for the first hours. */
const SPACE_NEEDED_BYTES = 512 * 1024 ** 2;
/** After a failed start, a clean stop would save no data. */
const GIVE_UP_STOP_MS = 5_000;

interface UpResult {
  /** The servers that this call started. Empty if everything already ran. */
  readonly started: readonly ServerName[];
  readonly topics: ApplyOutcome | 'left_alone';
}

interface StackParts {
  readonly paths: StackPaths;
  readonly servers: readonly ManagedServer[];
  readonly onProgress: OnProgress;
  readonly tools: (signal?: AbortSignal) => Promise<Tools>;
  /** Whether the servers change to TLS or from TLS. Null if they do not change. */
  readonly changesTo: 'with' | 'without' | null;
  /** Records how the servers were started. `isAll` is true if no server was running before. */
  readonly remember: (isAll: boolean) => Promise<void>;
  /** Null if topics are not requested. */
  readonly applyTopics: ((signal: AbortSignal) => Promise<ApplyOutcome>) | null;
}

/** Starts all missing servers in parallel and waits until everything is ready. All or nothing: see undo. */
async function up(parts: StackParts, outer?: AbortSignal): Promise<UpResult> {
  if (process.platform !== 'linux') {
    throw new StackError(
      'The local stack runs on Linux only; point MYSQL_URL, REDIS_URL and the rest at other servers.',
    );
  }
  ensureFolder(parts.paths.dir);
  chmodSync(parts.paths.dir, 0o700); // data, logs and secrets are private
  const lock = tryLock(parts.paths.lockFile);
  if ('heldBy' in lock) {
    throw new StackError(`Process ${lock.heldBy} is already starting this stack; wait until it is done.`);
  }
  const started: ManagedServer[] = [];
  const failure = new AbortController();
  const signal = outer === undefined ? failure.signal : AbortSignal.any([outer, failure.signal]);
  try {
    const missing = parts.servers.filter((server) => server.pid() === null);
    if (parts.changesTo !== null && missing.length < parts.servers.length) {
      throw new StackError(
        `These servers already run, and would change to run ${parts.changesTo} TLS; stop them first: npm run stack -- down.`,
      );
    }
    for (const server of missing) server.assertPortsFree(); // checks before a long download, and again at the start
    if (missing.length > 0) {
      assertDiskSpace(parts.paths.dir, SPACE_NEEDED_BYTES);
      await parts.tools(signal);
      await parts.remember(missing.length === parts.servers.length);
    }
    const topics = await startAll(parts, started, failure, signal);
    return { started: started.map(({ name }) => name), topics };
  } catch (error) {
    await undo(started);
    throw error;
  } finally {
    lock.release();
  }
}

/** Starts all servers. The first failure ends the wait of the others. */
async function startAll(
  parts: StackParts,
  started: ManagedServer[],
  failure: AbortController,
  signal: AbortSignal,
): Promise<UpResult['topics']> {
  let topics: UpResult['topics'] = 'left_alone';
  const jobs = parts.servers.map(async (server) => {
    await startOne(server, parts.onProgress, started, signal);
    if (server.name !== 'proxy' || parts.applyTopics === null) return;
    const { applyTopics } = parts;
    await runStep('topics', 'comparing', parts.onProgress, async () => {
      topics = await applyTopics(signal);
      return topics === 'unchanged' ? { skipped: 'in place' } : 'created and read back';
    });
  });
  const results = await Promise.allSettled(
    jobs.map((job) => job.catch((error: unknown) => (failure.abort(error), Promise.reject(error as Error)))),
  );
  // the first error causes the later errors
  if (failure.signal.aborted) throw failure.signal.reason;
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return topics;
}

async function startOne(
  server: ManagedServer,
  onProgress: OnProgress,
  started: ManagedServer[],
  signal: AbortSignal,
): Promise<void> {
  await runStep(server.name, 'starting', onProgress, async () => {
    const running = server.pid();
    if (running === null) {
      started.push(server); // before the start, because a server that fails halfway must be stopped too
      await server.start(signal);
    }
    await server.waitReady({ signal });
    const pid = server.pid() ?? '?';
    return running === null ? `ready (pid ${pid})` : { skipped: `already running (pid ${pid})` };
  });
}

/** Stops only the servers that this call started. */
async function undo(started: readonly ManagedServer[]): Promise<void> {
  await Promise.allSettled(started.map((server) => server.stop({ timeoutMs: GIVE_UP_STOP_MS })));
}

/**
 * The servers of a chain stop in turn, the chains in parallel: the broker unregisters from the name server, and the
 * databases depend on no other server.
 */
const STOP_CHAINS: readonly (readonly ServerName[])[] = [['proxy', 'namesrv'], ['mysql'], ['redis']];

interface DownOptions {
  /** Signal that ends the servers. SIGKILL is a crash, but quick. Defaults to SIGTERM. */
  readonly signal?: NodeJS.Signals;
}

/** @returns the servers that ran and were stopped */
async function down(
  servers: readonly ManagedServer[],
  onProgress: OnProgress,
  { signal = 'SIGTERM' }: DownOptions,
): Promise<ServerName[]> {
  const stopped: ServerName[] = [];
  const chains = STOP_CHAINS.map(async (chain) => {
    for (const name of chain) {
      const server = servers.find((one) => one.name === name);
      if (server !== undefined && (await stopOne(server, onProgress, signal))) stopped.push(name);
    }
  });
  const failed = (await Promise.allSettled(chains)).find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return stopped;
}

async function stopOne(server: ManagedServer, onProgress: OnProgress, signal: NodeJS.Signals): Promise<boolean> {
  const pid = server.pid();
  await runStep(server.name, 'stopping', onProgress, async () => {
    await server.stop({ signal });
    return pid === null ? { skipped: 'does not run' } : 'stopped';
  });
  return pid !== null;
}

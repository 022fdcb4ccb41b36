import { applyTopics, type ApplyOutcome } from '../../../src/rocketmq/admin/apply-topics.js';
import { OperationalError } from '../../../src/core/errors.js';
import { DEFAULT_CLUSTER } from '../../../src/rocketmq/admin/broker-state.js';
import { down, type DownOptions } from './down.js';
import { stackEnv, type StackEnv } from './env.js';
import { loadPorts, rememberPorts, type PortChoice } from './instance.js';
import { ManagedServer, type ServerStatus, type StackServer } from './managed-server.js';
import { DEFAULT_ARTIFACTS_DIR, DEFAULT_DIR, stackPaths } from './paths.js';
import type { StackPorts } from './ports.js';
import type { OnProgress } from './progress.js';
import { ensureSecrets, readSecrets } from './secrets.js';
import { mariadbSpec } from './servers/mariadb.js';
import { namesrvSpec } from './servers/namesrv.js';
import { proxySpec } from './servers/proxy.js';
import { redisSpec } from './servers/redis.js';
import type { Durability, ServerName } from './servers/server-spec.js';
import { explainFileError, StackError } from './stack-error.js';
import { readTopicLists, type TopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { toolsOnce } from './tools.js';
import { up, type UpResult } from './up.js';

export interface StackOptions {
  /** Folder of the instance: data, logs, pids, settings. Default `.stack` in the checkout. */
  readonly dir?: string;
  /** Ports at the first start of this folder; afterwards the remembered ones. Default `default`. */
  readonly ports?: PortChoice;
  /** For servers that are started from here on; one that runs keeps what it was started with. Default `process`. */
  readonly durability?: Durability;
  /** Where downloaded programs are kept; shared by all instances. Default `.stack/artifacts` in the checkout. */
  readonly artifactsDir?: string;
  /** For JAVA_HOME, PATH, REDIS_SERVER_BIN, MARIADBD_BIN. Default: the environment of this process. */
  readonly env?: NodeJS.ProcessEnv;
  readonly onProgress?: OnProgress;
}

/** One instance of the local stack: RocketMQ, MariaDB and Redis with data of their own, on loopback. */
export interface Stack {
  readonly dir: string;
  readonly ports: StackPorts;
  /**
   * Unix socket of MariaDB, for what an application may not do: the system user who started the stack is the
   * administrator there and needs no password.
   */
  readonly mariadbSocket: string;
  /**
   * Starts what does not run and waits until everything serves; then topics and groups are there too (unless
   * `topics` is false). When it fails, what it had started is stopped again.
   * @throws StackError with one sentence; the reason of `signal` when that was aborted
   */
  up(options?: { topics?: boolean; signal?: AbortSignal }): Promise<UpResult>;
  /** Stops our own servers and waits until they are gone. @returns those that ran */
  down(options?: DownOptions): Promise<ServerName[]>;
  /** One entry per server, in the order of SERVER_NAMES. Takes at most a few seconds. */
  status(): Promise<ServerStatus[]>;
  /** @throws StackError before the first `up` */
  env(): StackEnv;
  server(name: ServerName): StackServer;
  /** Creates further topics and groups, e.g. of one test. @throws StackError */
  applyTopics(lists: TopicLists): Promise<ApplyOutcome>;
}

/** Looks at an instance folder; changes nothing until `up`. @throws StackError when its files are damaged */
export function openStack(options: StackOptions = {}): Stack {
  const env = options.env ?? process.env;
  const onProgress = options.onProgress ?? (() => undefined);
  const paths = stackPaths(options.dir ?? DEFAULT_DIR);
  const ports = loadPorts(paths.instanceFile, options.ports ?? 'default');
  const tools = toolsOnce(options.artifactsDir ?? DEFAULT_ARTIFACTS_DIR, env, onProgress);
  const site = { paths, ports, durability: options.durability ?? 'process' };
  const servers = [redisSpec(site), mariadbSpec(site), namesrvSpec(site), proxySpec(site)].map(
    (spec) => new ManagedServer(spec, { ...site, tools }),
  );

  const target = { namesrvAddr: `127.0.0.1:${ports.namesrv}`, cluster: DEFAULT_CLUSTER };
  const apply = async (lists: TopicLists, signal?: AbortSignal): Promise<ApplyOutcome> => {
    try {
      return await applyTopics(target, lists, signal);
    } catch (error) {
      if (error instanceof OperationalError) throw new StackError(error.message, { cause: error });
      throw error;
    }
  };

  return {
    dir: paths.dir,
    ports,
    mariadbSocket: paths.mariadbSocket,
    up: async ({ topics = true, signal } = {}) => {
      try {
        return await up(
          {
            paths,
            servers,
            onProgress,
            tools,
            rememberPorts: () => {
              rememberPorts(paths.instanceFile, ports);
              ensureSecrets(paths.secretsFile);
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
      if (secrets === null) throw new StackError(`${paths.dir} was never started; run \`stack up\` first.`);
      return stackEnv(ports, secrets);
    },
    server: (name) => {
      const server = servers.find((one) => one.name === name);
      if (server === undefined) throw new StackError(`There is no server ${name as string} in the stack.`);
      return server;
    },
    applyTopics: (lists) => apply(lists),
  };
}

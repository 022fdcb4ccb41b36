import { Command, InvalidArgumentError } from 'commander';
import { readDuration } from '../core/duration.js';
import { loadConfig, removedSettings, type Environment } from '../core/config/load.js';
import { PROGRAM_SECTIONS, type Config } from '../core/config/schema.js';
import type { Log } from '../core/ports/log.js';
import { createLog } from '../process/telemetry.js';
import { runUnderSystemd } from './run-under-systemd.js';

// Each command loads only its own program, so that a start does not load the libraries of the other two.

const metricsPort = (port: number): string =>
  `port of /metrics, /healthz and /readyz; 0 picks a free one (default: METRICS_PORT or ${port})`;
const EXIT_CODES = `Log lines are JSON on stderr. SIGTERM and Ctrl-C finish the work in progress first.
Exit codes: 0 stopped, 1 could not start or hit a bug, 2 wrong options or settings.`;

export function apiCommand(): Command {
  return new Command('api')
    .description('serve the HTTP API: buyers and payments on one port, operators and monitoring on another')
    .option('--port <port>', 'port for buyers; 0 picks a free one (default: PORT or 8080)', parsePort)
    .option(
      '--operators-port <port>',
      'port for operators, /metrics and /readyz with reasons; 0 picks a free one (default: OPERATORS_PORT or 9103)',
      parsePort,
    )
    .addHelpText(
      'after',
      `
Examples:
  seckill api
  seckill api --port 0 --operators-port 0     any number of them may run, even on one machine

The port for operators listens on the loopback address. Set OPERATORS_HOST to another address that buyers cannot reach.
It needs MYSQL_URL, REDIS_URL, ROCKETMQ_ENDPOINT and JWT_SECRET.
${EXIT_CODES}`,
    )
    .action(async ({ port, operatorsPort }: { port?: string; operatorsPort?: string }) => {
      const env = withValue(withValue(process.env, 'PORT', port), 'OPERATORS_PORT', operatorsPort);
      const config = loadConfig(PROGRAM_SECTIONS.api, env);
      const log = logOf('api', config, env);
      const { startApi } = await import('../programs/api.js');
      await runUnderSystemd(log, (fail) => startApi(config, log, fail));
    });
}

interface WorkerFlags {
  readonly metricsPort?: string;
  readonly shadow?: boolean;
  readonly for?: number;
}

/** A week. If it ran longer, the broker would have forgotten the first messages. */
const RUN_MAX_MS = 7 * 86_400_000;

function parseRunTime(text: string): number {
  const ms = readDuration(text);
  if (ms !== null && ms > 0 && ms <= RUN_MAX_MS) return ms;
  throw new InvalidArgumentError('must be a time such as 90s, 10m or 1h, at most 7d.');
}

export function workerCommand(): Command {
  return new Command('worker')
    .description('write accepted purchases to MySQL as orders')
    .option('--metrics-port <port>', metricsPort(9101), parsePort)
    .option(
      '--shadow',
      'write nothing: compare the rows of the running workers with the rows that this build would write',
    )
    .option('--for <time>', 'end the shadow after this time, such as 1h', parseRunTime)
    .addHelpText(
      'after',
      `
Examples:
  seckill worker
  seckill worker --metrics-port 0      any number of them may run, even on one machine
  seckill worker --shadow --for 1h     before an upgrade, with the next release: exit code 0 if it would write the same

A shadow also receives every batch, under a consumer group of its own, and opens MySQL read-only. It compares the batches that
were made after it started, and waits up to a minute for the rows of each. Its log names the differences. Run one shadow at a time.
Exit codes of a shadow: 0 no difference; 1 differences, or more than 5 % of the batches were not compared; 2 wrong options or settings.

It needs MYSQL_URL, REDIS_URL and ROCKETMQ_ENDPOINT. METRICS_HOST=0.0.0.0 lets a Prometheus on another machine read the metrics.
${EXIT_CODES}`,
    )
    .action(async ({ metricsPort: port, shadow, for: forMs }: WorkerFlags, command: Command) => {
      if (forMs !== undefined && !shadow) command.error('error: --for needs --shadow');
      const env = withValue(process.env, 'METRICS_PORT', port);
      const config = loadConfig(PROGRAM_SECTIONS.worker, env);
      const log = logOf('worker', config, env);
      if (shadow) {
        const { startShadow } = await import('../programs/shadow.js');
        return runUnderSystemd(log, (fail) => startShadow(config, log, { forMs: forMs ?? null, fail }));
      }
      const { startWorker } = await import('../programs/worker.js');
      await runUnderSystemd(log, (fail) => startWorker(config, log, fail));
    });
}

export function keeperCommand(): Command {
  return new Command('keeper')
    .description('run the background jobs: expire unpaid orders, return units and money, repair after crashes')
    .option('--metrics-port <port>', metricsPort(9102), parsePort)
    .addHelpText(
      'after',
      `
Examples:
  seckill keeper
  seckill keeper --metrics-port 0      two are enough; any number may run, even on one machine

It publishes events of orders, expires unpaid orders, publishes unrecorded batches again, collects messages that no
attempt could handle (see \`seckill dlq\`), compares Redis and MySQL (see \`seckill reconcile\`), and rebuilds sales that
Redis lost. It needs MYSQL_URL, REDIS_URL and ROCKETMQ_ENDPOINT.
${EXIT_CODES}`,
    )
    .action(async ({ metricsPort: port }: { metricsPort?: string }) => {
      const env = withValue(process.env, 'METRICS_PORT', port);
      const config = loadConfig(PROGRAM_SECTIONS.keeper, env);
      const log = logOf('keeper', config, env);
      const { startKeeper } = await import('../programs/keeper.js');
      await runUnderSystemd(log, () => startKeeper(config, log));
    });
}

function logOf(program: string, { log: { level } }: Config<'log'>, env: Environment): Log {
  const log = createLog(program, level);
  for (const sentence of removedSettings(env)) log.warn({}, sentence);
  return log;
}

const withValue = (env: Environment, key: string, value: string | undefined): Environment =>
  value === undefined ? env : { ...env, [key]: value };

/** Returns text, because the port replaces an environment variable. */
function parsePort(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65535) throw new InvalidArgumentError('must be 0 to 65535.');
  return text;
}

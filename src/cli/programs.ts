import { Command, InvalidArgumentError } from 'commander';
import { runProgram, type Running } from '../programs/run-program.js';
import { startApi } from '../programs/api.js';
import { startKeeper } from '../programs/keeper.js';
import { startWorker } from '../programs/worker.js';
import { loadConfig, type Environment } from '../core/config/load.js';
import { PROGRAM_SECTIONS } from '../core/config/schema.js';
import { createLog } from '../programs/telemetry.js';

export function apiCommand(): Command {
  return new Command('api')
    .description('serve the HTTP API until SIGTERM or Ctrl-C')
    .option('--port <port>', 'port to listen on; 0 picks a free one (default: PORT or 8080)', parsePort)
    .action(async ({ port }: { port?: string }) => {
      const env = withValue(process.env, 'PORT', port);
      const config = loadConfig(PROGRAM_SECTIONS.api, env);
      const log = createLog('api', config.log.level);
      await runProgram(log, (fail) => startApi(config, log, fail));
    });
}

export function workerCommand(): Command {
  return new Command('worker')
    .description('write won purchases to MySQL until SIGTERM or Ctrl-C')
    .option('--metrics-port <port>', 'port of /metrics and /readyz (default: METRICS_PORT or a free one)', parsePort)
    .action(async ({ metricsPort }: { metricsPort?: string }) => {
      const env = withValue(process.env, 'METRICS_PORT', metricsPort);
      const config = loadConfig(PROGRAM_SECTIONS.worker, env);
      const log = createLog('worker', config.log.level);
      await runProgram(log, (fail): Promise<Running> => startWorker(config, log, fail));
    });
}

export function keeperCommand(): Command {
  return new Command('keeper')
    .description(
      'publish, expire, re-drive, settle, reconcile, refund and collect dead letters until SIGTERM or Ctrl-C',
    )
    .option('--metrics-port <port>', 'port of /metrics and /readyz (default: METRICS_PORT or a free one)', parsePort)
    .action(async ({ metricsPort }: { metricsPort?: string }) => {
      const env = withValue(process.env, 'METRICS_PORT', metricsPort);
      const config = loadConfig(PROGRAM_SECTIONS.keeper, env);
      const log = createLog('keeper', config.log.level);
      await runProgram(log, () => startKeeper(config, log));
    });
}

const withValue = (env: Environment, key: string, value: string | undefined): Environment =>
  value === undefined ? env : { ...env, [key]: value };

function parsePort(text: string): string {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new InvalidArgumentError('must be 0 to 65535');
  return text;
}

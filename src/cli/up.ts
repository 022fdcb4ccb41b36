import { Command } from 'commander';
import { withSaleDesk } from '../app/sale-desk-session.js';
import { loadConfig, type Environment } from '../config/load.js';
import type { Sale } from '../domain/sale.js';
import { signToken } from '../http/token.js';
import { migrate } from '../mysql/migrate.js';
import { createLog } from '../observability/log.js';
import type { SaleDesk } from '../sale/sale-desk.js';
import type { StackStep } from '../stack/progress.js';
import { SERVER_NAMES } from '../stack/servers/server-spec.js';
import { openStack, type Stack } from '../stack/stack.js';
import { CliError } from './cli-error.js';
import { parseWhole } from './options.js';
import { progressStyle, showProgress } from './stack-progress.js';
import { reportStackError } from './stack-failure.js';
import { SupervisedProgram } from './supervisor.js';
import { welcome } from './welcome.js';

interface UpFlags {
  readonly dir?: string;
  readonly port?: number;
  readonly freePorts?: boolean;
  readonly keepStack?: boolean;
  readonly json?: boolean;
}

const UP_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES, 'topics'];
/** The sale that a newcomer buys from. */
const DEMO = { sku: 'demo', title: 'Demo: a very limited edition', priceCents: 1999, stock: 1000, limitPerBuyer: 2 };
const DEMO_OPEN_DAYS = 30;
const DAY_MS = 86_400_000;

export function upCommand(): Command {
  return new Command('up')
    .description('start everything on this machine: servers, schema, a demo sale, api, worker and keeper')
    .option('--dir <folder>', 'folder of the local stack (default: .stack in the checkout)')
    .option('--port <port>', 'port of the api (default: 8080)', parseWhole(0, 65535))
    .option('--free-ports', 'at the first start of a folder: let the servers take free ports and remember them')
    .option('--keep-stack', 'leave the servers running at the end')
    .option('--json', 'lines of JSON for programs')
    .action(up);
}

async function up(flags: UpFlags): Promise<void> {
  await reportStackError(flags.json, async (signal) => {
    const stack = await startStack(flags, signal);
    const programs: SupervisedProgram[] = [];
    try {
      const env: Environment = { ...process.env, ...stack.env() };
      const sale = await prepare(env);
      const apiPort = await startPrograms(env, flags, programs, signal);
      greet(flags, env, apiPort, sale);
      await aborted(signal);
    } finally {
      if (signal.aborted && !flags.json) console.error('\nStopping: api, worker, keeper, then the servers.');
      for (const program of programs) await program.stop();
      if (!flags.keepStack) await stack.down();
      if (!flags.json) console.error('Stopped. The data is kept; npm start goes on from here.');
    }
  });
  if (process.exitCode === 130) process.exitCode = 0; // Ctrl-C is the way to end this command
}

function startStack(flags: UpFlags, signal: AbortSignal): Promise<Stack> {
  return showProgress(progressStyle(flags.json === true), UP_STEPS, async (onProgress) => {
    const stack = openStack({ dir: flags.dir, ports: flags.freePorts ? 'free' : 'default', onProgress });
    await stack.up({ signal });
    return stack;
  });
}

/** Schema and demo sale. */
async function prepare(env: Environment): Promise<Sale> {
  const config = loadConfig(['mysql', 'redis', 'gate'], env);
  await migrate(config.mysql);
  return withSaleDesk(config, createLog('up', 'warn'), demoSale);
}

/** The open demo sale that still has units, or a new one. */
async function demoSale(desk: SaleDesk): Promise<Sale> {
  const nowMs = Date.now();
  const known = (await desk.list(100)).find(
    (sale) => sale.sku === DEMO.sku && sale.state === 'open' && sale.sold < sale.stock && sale.closesAtMs > nowMs,
  );
  if (known) return known;
  const window = { opensAtMs: nowMs - 1000, closesAtMs: nowMs + DEMO_OPEN_DAYS * DAY_MS };
  const { saleId } = await desk.create({ ...DEMO, ...window, buckets: 1 });
  await desk.warm(saleId);
  const opened = await desk.open(saleId);
  if (opened.outcome !== 'done') throw new CliError(`the demo sale ${saleId} could not be opened: ${opened.outcome}.`);
  return opened.sale;
}

async function startPrograms(
  env: Environment,
  flags: UpFlags,
  programs: SupervisedProgram[],
  signal: AbortSignal,
): Promise<number> {
  const events = {
    onRestart: (name: string, why: string) => console.error(`The ${name} died (${why}); starting it again.`),
  };
  // On this machine nobody is charged: unless somebody says otherwise, payments are simulated.
  const programEnv = { LOG_LEVEL: 'warn', PAYMENT_PROVIDER: 'simulator', ...env };
  const make = (name: string, args: string[]): SupervisedProgram => {
    const program = new SupervisedProgram({ name, args, env: programEnv }, events);
    programs.push(program);
    return program;
  };
  const port = flags.port === undefined ? [] : ['--port', String(flags.port)];
  const [api] = await Promise.all([
    make('api', ['api', ...port]).start(),
    make('worker', ['worker']).start(),
    make('keeper', ['keeper']).start(),
  ]);
  signal.throwIfAborted();
  return Number(api.facts.port);
}

function greet(flags: UpFlags, env: Environment, apiPort: number, sale: Sale): void {
  const { auth } = loadConfig(['auth'], env);
  const token = signToken({ userId: 'demo-buyer', roles: [], ttlMs: DAY_MS }, auth.key);
  const url = `http://127.0.0.1:${apiPort}`;
  if (flags.json) console.log(JSON.stringify({ result: 'up', url, saleId: sale.saleId, token }));
  else console.log(welcome({ url, saleId: sale.saleId, token, title: sale.title }));
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

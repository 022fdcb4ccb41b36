import { Command, InvalidArgumentError } from 'commander';
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSales } from '../../src/operate/sales/services.js';
import { withConnections } from '../../src/process/connections.js';
import { loadConfig, type Environment } from '../../src/core/config/load.js';
import { readDuration } from '../../src/core/duration.js';
import type { Sale } from '../../src/core/sale.js';
import { migrate } from '../../src/mysql/migrate.js';
import { createLog } from '../../src/process/telemetry.js';
import type { SaleAdmin } from '../../src/sales/sale-admin.js';
import { assertPortsFree, freePortsOr, listeningPorts } from './stack/ports.js';
import { tryLock } from './stack/processes.js';
import { DEFAULT_DIR, stackPaths } from './stack/paths.js';
import { StackError } from './stack/stack-error.js';
import { openStack, type Stack } from './stack/stack.js';
import { chosenIn, versionOptions, type Versions } from './stack/versions.js';
import { CliError, UsageError } from '../../src/process/cli-error.js';
import { operatorName, parseWhole } from '../../src/process/options.js';
import { signerOf } from '../../src/cli/setup.js';
import { Demo, demoEnv } from './demo/demo.js';
import { SERVER_NAMES } from './stack/servers/server-spec.js';
import { progressStyle, showProgress, UP_STEPS } from './stack-progress.js';
import { reportStackError } from './stack-command.js';
import { onNpmEnd } from './npm-watch.js';
import { buildPagesIfOlder } from './pages.js';
import { SupervisedProgram } from './supervisor.js';
import { waitUntilOpen } from './wait-until-open.js';
import { welcome } from './welcome.js';

interface UpFlags extends Partial<Versions> {
  readonly dir?: string;
  readonly port?: number;
  readonly operatorsPort?: number;
  readonly freePorts?: boolean;
  readonly keepStack?: boolean;
  readonly traffic?: boolean;
  readonly faults?: boolean;
  /** Time after which the command ends by itself, ms. */
  readonly for?: number;
  readonly json?: boolean;
}

interface UpPorts {
  readonly api: number;
  /** Operators' port of the API. */
  readonly operators: number;
  /** Ports of worker and keeper. */
  readonly metrics: readonly number[];
}

/** Prints a sentence with the time of day for people at the terminal. */
const report = (sentence: string): void => console.error(`${new Date().toTimeString().slice(0, 8)}  ${sentence}`);
const urlOf = (port: number): string => `http://127.0.0.1:${port}`;

/** The sale for a newcomer's first purchase. */
const DEMO = { sku: 'demo', title: 'Demo: a very limited edition', priceCents: 1999, stock: 1000, limitPerBuyer: 2 };
const DEMO_OPEN_DAYS = 30;
const DAY_MS = 86_400_000;
/** Lifetime of the printed console tokens. */
const SIGN_IN_MS = 8 * 3_600_000;
const DATA_KEPT = 'The data is kept. npm start continues from here.';
const SERVERS_RUN = 'The servers still run. Stop them with: npm run stack -- down';

const EXAMPLES = `
Examples:
  npm start                          runs until Ctrl-C
  npm start -- --traffic             with simulated buyers, so that all pages and figures change
  npm start -- --traffic --faults    breaks something every minute; the terminal says what, and where to look
  npm start -- --traffic --for 10m   ends after ten minutes

The traffic uses little of the machine and may run for hours. At the end the command compares Redis and MySQL, which takes seconds.
Exit codes: 0 ended normally, 1 could not start, or Redis and MySQL differ after traffic, 2 wrong usage.`;

export function upCommand(): Command {
  const up = new Command('up')
    .description('start everything on this machine: servers, schema, a demo sale, api, worker and keeper')
    .option('--dir <folder>', 'folder of the local stack (default: .stack in the checkout)')
    .option('--port <port>', 'port of the api for buyers (default: 8080); 0 picks free ones', parseWhole(0, 65535))
    .option('--operators-port <port>', 'port of the api for operators (default: 9103)', parseWhole(0, 65535))
    .option('--free-ports', 'at the first start of a folder: let the servers take free ports and remember them')
    .option('--keep-stack', 'leave the servers running at the end')
    .option('--traffic', 'simulate buyers in waves, with new sales when old ones end')
    .option('--faults', 'with --traffic: cause a refused batch, a killed worker or an open half message every minute')
    .option('--for <duration>', 'end after this time, such as 10m', parseDuration)
    .option('--json', 'print JSON lines for programs')
    .addHelpText('after', EXAMPLES)
    .action(start);
  for (const option of versionOptions()) up.addOption(option);
  return up;
}

function parseDuration(text: string): number {
  const ms = readDuration(text);
  if (ms === null || ms === 0) throw new InvalidArgumentError('must be a duration such as 90s, 10m or 2h.');
  return ms;
}

async function start(flags: UpFlags): Promise<void> {
  if (flags.faults && !flags.traffic)
    throw new UsageError('--faults needs --traffic, because a fault without buyers shows nothing.');
  await reportStackError(flags.json, async (signal) => {
    const lock = lockFolder(flags);
    try {
      assertApiPortsFree(flags, process.env); // at once instead of after the servers boot
      onNpmEnd(signal, () => process.kill(process.pid, 'SIGTERM'));
      await runSystem(flags, signal);
    } finally {
      lock.release();
    }
  });
  if (process.exitCode === 130) process.exitCode = 0; // Ctrl-C is the normal way to end this command
}

interface StartedStack {
  readonly stack: Stack;
  /** Whether a server ran before this command, which then stops no server. */
  readonly ranBefore: boolean;
}

/** Starts everything, runs until the signal, and stops what it has started. */
async function runSystem(flags: UpFlags, signal: AbortSignal): Promise<void> {
  const building = buildPagesIfOlder(signal); // while the servers start
  building.catch(() => undefined); // awaited below, where a failure stops the servers
  const { stack, ranBefore } = await startServers(flags, signal);
  const programs: SupervisedProgram[] = [];
  const { traffic = false, faults = false } = flags;
  try {
    await building;
    const { PAYMENT_WEBHOOK_SECRET = stack.env().PAYMENT_WEBHOOK_SECRET } = process.env; // the secret of a provider takes precedence
    const env = programEnv({ ...process.env, ...stack.env(), PAYMENT_WEBHOOK_SECRET }, { traffic, faults });
    const sale = await prepare(env);
    const { api, worker, keeper } = makePrograms(env, flags, programs);
    await Promise.all([api.start(), worker.start(), keeper.start()]);
    signal.throwIfAborted();
    const ports = portsOf({ api, worker, keeper });
    const urls = { url: urlOf(ports.api), operatorsUrl: urlOf(ports.operators) };
    const reason = await waitUntilOpen(urls, sale.saleId, signal);
    if (reason !== null) report(`Not everything is ready after a minute: ${reason}.`);
    greet(flags, env, ports, sale);
    if (!traffic) await ended(flags, signal);
    else await runDemo(new Demo({ env, api, worker, faults, report, print: printerOf(flags) }), flags, signal);
  } finally {
    const stopServers = !flags.keepStack && !ranBefore;
    if (signal.aborted && !flags.json) {
      console.error(`\nStopping: api, worker, keeper${stopServers ? ', then the servers' : ''}.`);
    }
    // The API stops first, so that worker and keeper write the purchases that it still accepts.
    const [api, ...others] = programs;
    await api?.stop();
    await Promise.all(others.map((program) => program.stop()));
    if (stopServers) await stack.down();
    if (!flags.json) console.error(`Stopped. ${stopServers ? DATA_KEPT : SERVERS_RUN}`);
  }
}

/**
 * Prevents two commands on one folder: they would share its sale and its ports, and the first to end would stop both.
 */
function lockFolder({ dir }: UpFlags): { release: () => void } {
  const lock = tryLock(stackPaths(dir ?? DEFAULT_DIR).systemLockFile);
  if (!('heldBy' in lock)) return lock;
  throw new StackError(
    `Process ${lock.heldBy} already serves this folder. Stop it with Ctrl-C, or start another system ` +
      'with npm start -- --dir <folder> --free-ports --port 0.',
  );
}

/**
 * Returns the operators' port of the flags, or undefined for the environment or the default. A free port for buyers
 * implies a free port for operators.
 */
const operatorsPortOf = ({ port, operatorsPort }: UpFlags): number | undefined =>
  operatorsPort ?? (port === 0 ? 0 : undefined);

/** @throws StackError when another process listens on a port of the API, ConfigError for an invalid PORT */
export function assertApiPortsFree(flags: UpFlags, env: Environment): void {
  const { http, operators } = loadConfig(['http', 'operators'], env);
  const ports = [
    { port: flags.port ?? http.port, label: 'api', flag: '--port' },
    { port: operatorsPortOf(flags) ?? operators.port, label: 'api for operators', flag: '--operators-port' },
  ];
  for (const { flag, ...port } of ports) {
    assertPortsFree([port], `choose another with \`npm start -- ${flag} <port>\` (0: a free one)`);
  }
}

function startServers(flags: UpFlags, signal: AbortSignal): Promise<StartedStack> {
  return showProgress(progressStyle(flags.json === true), UP_STEPS, async (onProgress) => {
    const ports = flags.freePorts ? 'free' : 'default';
    const stack = openStack({ dir: flags.dir, ports, versions: chosenIn(flags), onProgress });
    const { started } = await stack.up({ signal });
    return { stack, ranBefore: started.length < SERVER_NAMES.length };
  });
}

/** Prepares the schema and the demo sale. */
async function prepare(env: Environment): Promise<Sale> {
  const config = loadConfig(['mysql', 'redis'], env);
  await migrate(config.mysql);
  return withConnections(config, createLog('up', 'warn'), async (connections) =>
    demoSale(await openSales(connections)),
  );
}

/** Returns the open demo sale that still has units, or a new sale. */
async function demoSale(admin: SaleAdmin): Promise<Sale> {
  const nowMs = Date.now();
  const known = (await admin.list({ sku: DEMO.sku, max: 100 })).find(
    (sale) => sale.state === 'open' && sale.sold < sale.stock && sale.closesAtMs > nowMs,
  );
  if (known) return known;
  const actor = operatorName();
  const window = { opensAtMs: nowMs - 1000, closesAtMs: nowMs + DEMO_OPEN_DAYS * DAY_MS };
  const made = await admin.create(
    { ...DEMO, ...window, currency: 'EUR', buckets: 1, warmBeforeMs: null, paymentWindowMs: null },
    actor,
  );
  if (made.outcome !== 'created') throw new CliError(`the demo sale ${made.outcome}.`);
  const { saleId } = made.sale;
  await admin.warm(saleId, actor);
  const opened = await admin.open(saleId, actor);
  if (opened.outcome !== 'done') throw new CliError(`the demo sale ${saleId} could not be opened: ${opened.outcome}.`);
  return opened.sale;
}

/** Returns the environment of all programs. The caller's environment takes precedence over these settings. */
const programEnv = (env: Environment, { traffic, faults }: { traffic: boolean; faults: boolean }): Environment => ({
  LOG_LEVEL: 'warn',
  PAYMENT_PROVIDER: 'simulator', // no buyer is charged on this machine
  PAYMENT_WEBHOOK_MODE: 'test', // no money that is reported here is real
  SHOP_NAME: 'Seckill demo',
  ...(traffic ? demoEnv({ faults }) : {}),
  ...env,
});

interface MadePrograms {
  readonly api: SupervisedProgram;
  readonly worker: SupervisedProgram;
  readonly keeper: SupervisedProgram;
}

/** @param programs receives the programs in the order in which they are stopped */
function makePrograms(env: Environment, flags: UpFlags, programs: SupervisedProgram[]): MadePrograms {
  const make = (name: string, args: readonly string[]): SupervisedProgram => {
    const program = new SupervisedProgram({ name, args: [name, ...args], env }, report);
    programs.push(program);
    return program;
  };
  const flag = (name: string, port: number | undefined): string[] => (port === undefined ? [] : [name, String(port)]);
  const api = make('api', [...flag('--port', flags.port), ...flag('--operators-port', operatorsPortOf(flags))]);
  const [workerPort, keeperPort] = metricsPorts(flags);
  return {
    api,
    worker: make('worker', flag('--metrics-port', workerPort)),
    keeper: make('keeper', flag('--metrics-port', keeperPort)),
  };
}

/**
 * Returns the ports that Prometheus expects by default if they are free. A free port for buyers implies free metrics
 * ports.
 */
function metricsPorts({ port }: UpFlags): number[] {
  const { workerMetrics, keeperMetrics } = loadConfig(['workerMetrics', 'keeperMetrics'], {});
  const wanted = port === 0 ? [null, null] : [workerMetrics.port, keeperMetrics.port];
  return freePortsOr(wanted, listeningPorts());
}

const portsOf = ({ api, worker, keeper }: MadePrograms): UpPorts => ({
  api: Number(api.facts.port),
  operators: Number(api.facts.operatorsPort),
  metrics: [worker, keeper].map(({ facts }) => Number(facts.metricsPort)),
});

/** Sets the exit code to 1 if the books are wrong. */
async function runDemo(demo: Demo, flags: UpFlags, signal: AbortSignal): Promise<void> {
  demo.start();
  try {
    await ended(flags, signal);
  } finally {
    if (!flags.json)
      console.error('\nThe traffic has ended. Waiting for open purchases; press Ctrl-C again to end at once.');
    if (!(await demo.stop())) process.exitCode = 1;
  }
}

/** Prints JSON lines for programs if requested. */
const printerOf =
  ({ json }: UpFlags) =>
  (line: object): void => {
    if (json) console.log(JSON.stringify(line));
  };

function greet(flags: UpFlags, env: Environment, ports: UpPorts, sale: Sale): void {
  const { auth, payment } = loadConfig(['auth', 'payment'], env);
  const sign = signerOf(auth);
  const tokenOf = (userId: string, roles: readonly string[], lifeMs: number): string =>
    sign({ userId, roles, ttlMs: Math.min(lifeMs, auth.lifeMaxMs), tokenId: randomUUID() });
  const { saleId, title } = sale;
  const url = urlOf(ports.api);
  const operatorsUrl = urlOf(ports.operators);
  const token = tokenOf(`demo-buyer-${randomBytes(3).toString('hex')}`, [], DAY_MS);
  const facts = {
    url,
    operatorsUrl,
    buyerUrl: `${url}/s/${saleId}#token=${token}`,
    consoleUrl: `${operatorsUrl}/console`,
    metricsUrls: ports.metrics.map((port) => `${urlOf(port)}/metrics`),
    saleId,
    token,
    viewerToken: tokenOf('demo-viewer', ['viewer'], SIGN_IN_MS),
    adminToken: tokenOf('demo-admin', ['admin'], SIGN_IN_MS),
  };
  if (flags.json) return console.log(JSON.stringify({ result: 'up', ...facts }));
  const { traffic = false, faults = false } = flags;
  const isSimulated = payment.provider === 'simulator';
  console.log(welcome({ ...facts, title, traffic, faults, isSimulated }));
}

/** Resolves at the signal or after the requested time. */
async function ended({ for: forMs }: UpFlags, signal: AbortSignal): Promise<void> {
  const wait = forMs === undefined ? aborted(signal) : sleep(forMs, undefined, { signal });
  await wait.catch(() => undefined);
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

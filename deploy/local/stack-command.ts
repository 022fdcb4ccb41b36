import { networkInterfaces } from 'node:os';
import { DEFAULT_DIR, stackPaths } from './stack/paths.js';
import { type ClaimedPort, exposedPorts } from './stack/ports.js';
import { readPidFile } from './stack/processes.js';
import { Command, Option } from 'commander';
import { progressStyle, seconds, showProgress, UP_STEPS } from './stack-progress.js';
import type { ServerStatus } from './stack/managed-server.js';
import { refusesStrangers } from './stack/servers/rocketmq.js';
import { DURABILITIES, type Durability, SERVER_NAMES } from './stack/servers/server-spec.js';
import { brokerAccessIn, envLines } from './stack/settings.js';
import { StackError } from './stack/stack-error.js';
import { openStack } from './stack/stack.js';
import { chosenIn, versionOptions, type Versions } from './stack/versions.js';

interface StackFlags extends Partial<Versions> {
  readonly dir?: string;
  readonly json?: boolean;
  readonly force?: boolean;
  readonly freePorts?: boolean;
  readonly durability?: Durability;
  readonly secure?: boolean;
}

const ENV_HELP = `In a shell:  eval "$(npm run -s stack -- env)"
The -s is needed: without it npm prints two lines of its own first (> …), which a shell takes as redirections into files.`;

/** `npm run -s stack -- up|down|status|env|mqadmin`: the servers of the local stack. */
export function stackCommand(): Command {
  const stack = new Command('stack')
    .enablePositionalOptions() // arguments after `mqadmin <command>` belong to mqadmin
    .usage('<verb> [options]')
    .description('RocketMQ, MySQL and Redis on this machine, without root');
  const withFlags = (command: Command): Command =>
    command
      .option('--dir <folder>', 'folder of the instance (default: .stack in the checkout)')
      .option('--json', 'lines of JSON for programs');
  const up = withFlags(stack.command('up'))
    .description('start what does not run, wait until all of it serves, create topics and groups')
    .option('--free-ports', 'at the first start of a folder: take free ports and remember them')
    .addOption(
      new Option('--durability <level>', 'what an answer of the servers outlives: a process, or the host')
        .choices(DURABILITIES)
        .default('process'),
    )
    .option(
      '--secure',
      'TLS and access control everywhere, with certificates made here (default: as at the last start)',
    )
    .option('--no-secure', 'without TLS again')
    .action(stackUp);
  for (const option of versionOptions()) up.addOption(option);
  withFlags(stack.command('down'))
    .description('stop the servers of this folder')
    .option('--force', 'also under a running `npm start`')
    .action(stackDown);
  withFlags(stack.command('status')).description('exit 0 if all servers run, else 1').action(stackStatus);
  stack
    .command('mqadmin')
    .description("RocketMQ's own admin tool on the broker of this folder: docs/monitoring.md")
    .usage('[--dir <folder>] <command> [options of mqadmin]')
    .option('--dir <folder>', 'folder of the instance (default: .stack in the checkout)')
    .argument('[arguments...]', 'as mqadmin takes them; the name server is added')
    .passThroughOptions()
    .allowUnknownOption()
    .action(stackMqadmin);
  withFlags(stack.command('env'))
    .description('settings that point the product at this instance')
    .addHelpText('after', `\n${ENV_HELP}`)
    .action(stackEnv);
  return stack;
}

async function stackUp(flags: StackFlags): Promise<void> {
  await reportStackError(flags.json, async (signal) => {
    const begunAtMs = performance.now();
    const result = await showProgress(progressStyle(flags.json === true), UP_STEPS, (onProgress) =>
      openStack({
        dir: flags.dir,
        ports: flags.freePorts ? 'free' : 'default',
        versions: chosenIn(flags),
        durability: flags.durability,
        secure: flags.secure,
        onProgress,
      }).up({ signal }),
    );
    const elapsedMs = Math.round(performance.now() - begunAtMs);
    if (flags.json) print({ result: 'up', ...result, elapsedMs });
    else if (result.started.length === 0) console.log('The stack is already running; nothing was started.');
    else console.log(`The stack is up (${seconds(elapsedMs)}). Its settings: npm run -s stack -- env`);
  });
}

async function stackDown(flags: StackFlags): Promise<void> {
  await reportStackError(flags.json, async () => {
    const system = readPidFile(stackPaths(flags.dir ?? DEFAULT_DIR).systemLockFile);
    if (system !== null && !flags.force) {
      throw new StackError(`npm start (pid ${system.pid}) uses these servers: end it with Ctrl-C, or add --force.`);
    }
    const stopped = await showProgress(progressStyle(flags.json === true), SERVER_NAMES, (onProgress) =>
      openStack({ dir: flags.dir, onProgress }).down(),
    );
    if (flags.json) print({ result: 'down', stopped });
    else console.log(stopped.length === 0 ? 'The stack was not running.' : 'The stack is down; its data is kept.');
  });
}

async function stackStatus(flags: StackFlags): Promise<void> {
  await reportStackError(flags.json, async () => {
    const stack = openStack({ dir: flags.dir });
    const statuses = await stack.status();
    const isOpen = statuses.some(({ name, state }) => name === 'proxy' && state === 'running');
    const exposed = isOpen ? exposedPorts(stack.ports, networkInterfaces()) : [];
    const accessControl = isOpen && (await refusesStrangers(stack.ports, brokerAccessIn(stack.env())));
    if (flags.json) {
      for (const status of statuses) {
        const exposedOf = exposed.map(({ port }) => port);
        print(status.name === 'proxy' ? { ...status, exposedPorts: exposedOf, accessControl } : status);
      }
    } else {
      console.log(statusTable(statuses));
      if (exposed.length > 0) console.error(exposureNote(exposed, accessControl));
    }
    if (statuses.some(({ state }) => state !== 'running')) process.exitCode = 1;
  });
}

async function stackMqadmin(args: readonly string[], { dir }: StackFlags): Promise<void> {
  await reportStackError(false, async () => {
    const { stdout, stderr, exitCode } = await openStack({ dir }).mqadmin(args);
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    process.exitCode = exitCode;
  });
}

async function stackEnv(flags: StackFlags): Promise<void> {
  await reportStackError(flags.json, async () => {
    const env = openStack({ dir: flags.dir }).env();
    if (flags.json) print(env);
    else process.stdout.write(envLines(env));
    if (npmPrintedItsLines(process.env)) console.error(ENV_HELP.replace(/^/gm, '# '));
  });
}

/**
 * Whether npm printed the name and the text of the script. npm does so unless it is silent, and the lines cannot be
 * removed.
 */
const npmPrintedItsLines = (env: NodeJS.ProcessEnv): boolean =>
  env.npm_lifecycle_event === 'stack' && env.npm_config_loglevel !== 'silent';

/** Returns the note of `stack status` about ports that other machines can reach. */
export function exposureNote(exposed: readonly ClaimedPort[], accessControl: boolean): string {
  const ports = exposed.map(({ port, label }) => `${port} (${label})`).join(', ');
  const more = 'docs/operations.md#who-reaches-the-broker';
  if (accessControl) return `\nOther machines can reach ${ports}, and are refused there without the key: ${more}`;
  return `
Warning: other machines can reach ${ports}, without access control: an older version started these servers.
Start them again: npm run stack -- down, then npm run stack -- up (or npm start). More: ${more}`;
}

function statusTable(statuses: readonly ServerStatus[]): string {
  const rows = statuses.map(({ name, state, pid, ports, reason }) => [
    name,
    state,
    String(pid ?? '-'),
    ports.join(' '),
    state === 'running' || state === 'stopped' ? '' : (reason ?? ''),
  ]);
  const table = [['server', 'state', 'pid', 'ports', ''], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** The exit code that a shell reports after Ctrl-C. */
const INTERRUPTED = 130;
/** A single Ctrl-C can arrive twice: from the terminal, and again from npm or tsx. */
const SAME_INTERRUPT_MS = 1_000;
/** SIGHUP arrives when the terminal closes. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs work on the stack for a command. Reports a StackError as one sentence with exit code 1. Ctrl-C and SIGTERM
 * abort the work, which cleans up. A second signal, a while later, exits at once and says what may be left.
 */
export async function reportStackError(
  json: boolean | undefined,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  let interruptedAtMs: number | null = null;
  const interrupt = (): void => {
    interruptedAtMs ??= performance.now();
    controller.abort(new StackError('Interrupted; what had been started is stopped again.'));
    if (performance.now() - interruptedAtMs <= SAME_INTERRUPT_MS) return;
    console.error('seckill: left at once. Servers may still run: npm run stack -- down stops them.');
    process.exit(INTERRUPTED);
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    await work(controller.signal);
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    process.exitCode = controller.signal.aborted ? INTERRUPTED : 1;
    if (json) process.stdout.write(`${JSON.stringify({ result: 'failed', error: error.message })}\n`);
    else console.error(`seckill: ${error.message}`);
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

import { Argument, Command } from 'commander';
import { loadConfig, type Environment } from '../core/config/load.js';
import { PROGRAM_KINDS, type ProgramKind } from '../core/ports/program-reports.js';
import { addressToAsk } from './addresses.js';
import { CliError } from '../process/cli-error.js';
import { print } from '../process/print.js';

/** Shorter than the time-out of a container health check, so that the command can still print the reason. */
const ANSWER_MS = 2000;

const EXAMPLES = `
Examples:
  seckill health                 in a container that runs one program
  seckill health worker --ready

The addresses come from OPERATORS_HOST and OPERATORS_PORT (api), METRICS_HOST and METRICS_PORT (worker, keeper).
Exit codes: 0 yes, 1 no, 2 wrong usage.`;

interface Flags {
  readonly ready?: boolean;
}

export function healthCommand(): Command {
  return new Command('health')
    .description('check whether a program on this machine is alive, for health checks of containers')
    .addArgument(new Argument('[program]', 'program to check (default: any that answers)').choices(PROGRAM_KINDS))
    .option('--ready', 'check that it is ready for work: its servers must answer too')
    .addHelpText('after', EXAMPLES)
    .action((program: ProgramKind | undefined, { ready = false }: Flags) => {
      const addresses = addressesOf(process.env);
      const asked = program === undefined ? [...new Set(Object.values(addresses))] : [addresses[program]];
      return askHealth(asked, ready ? 'ready' : 'alive');
    });
}

function addressesOf(env: Environment): Readonly<Record<ProgramKind, string>> {
  const { operators, workerMetrics, keeperMetrics } = loadConfig(['operators', 'workerMetrics', 'keeperMetrics'], env);
  return { api: addressToAsk(operators), worker: addressToAsk(workerMetrics), keeper: addressToAsk(keeperMetrics) };
}

type Asked = 'alive' | 'ready';

/** @throws CliError if no program is healthy */
export async function askHealth(addresses: readonly string[], asked: Asked): Promise<void> {
  const answers = await Promise.all(addresses.map((address) => askOne(address, asked)));
  if (!answers.some(({ isYes }) => isYes)) throw new CliError(answers.map(({ sentence }) => sentence).join('; '));
  for (const { isYes, sentence } of answers) if (isYes) print(sentence);
}

async function askOne(address: string, asked: Asked): Promise<{ readonly isYes: boolean; readonly sentence: string }> {
  try {
    const path = asked === 'alive' ? '/healthz' : '/readyz';
    const answer = await fetch(`${address}${path}`, { signal: AbortSignal.timeout(ANSWER_MS) });
    const body = await answer.text();
    if (answer.ok) return { isYes: true, sentence: `The program at ${address} is ${asked}.` };
    return { isYes: false, sentence: `the program at ${address} is not ${asked}: ${reasonsIn(body) || answer.status}` };
  } catch (error) {
    const { cause, message } = error as Error;
    const { code } = (cause ?? {}) as NodeJS.ErrnoException;
    return { isYes: false, sentence: `no answer from ${address} (${code ?? message})` };
  }
}

/** Returns why servers are not ready, from the body of `/readyz`. */
function reasonsIn(body: string): string {
  try {
    const { dependencies = [] } = JSON.parse(body) as {
      readonly dependencies?: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
    };
    const bad = dependencies.filter(({ ok }) => !ok);
    return bad.map(({ name, detail }) => `${name} (${detail})`).join(', ');
  } catch {
    return '';
  }
}

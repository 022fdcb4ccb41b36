import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { Argument, Command } from 'commander';
import { loadConfig } from '../core/config/load.js';
import { addressToAsk } from './addresses.js';
import { CliError, UsageError } from '../process/cli-error.js';
import { parseWhole } from '../process/options.js';
import { print } from '../process/print.js';
import { signerOf } from './setup.js';

const SECONDS_MAX = 30;
const SECONDS_DEFAULT = 10;
/** How long the answer may take after the last second of the profile. */
const ANSWER_MS = 20_000;
const TOKEN_MS = 60_000;
const WHO = 'seckill-profile';

const EXAMPLES = `
Examples:
  seckill profile api
  seckill profile api --seconds 30 --out rush.cpuprofile
  seckill profile api --heap --url http://10.0.0.7:9103 --token "$TOKEN"

The file opens in the developer tools of Chrome (Performance for .cpuprofile, Memory for .heapprofile) and in VS Code.
The command asks the port for operators of one api. It needs a token with the role admin: --token, SECKILL_TOKEN, or a token
that it signs with JWT_SECRET or JWT_KEYS. Exit codes: 0 saved, 1 not saved, 2 wrong usage.`;

interface Flags {
  readonly seconds: number;
  readonly heap?: boolean;
  readonly url?: string;
  readonly token?: string;
  readonly out?: string;
}

export function profileCommand(): Command {
  return new Command('profile')
    .description('save a CPU or heap profile of a running api')
    .addArgument(new Argument('<program>', 'which program').choices(['api']))
    .option('--seconds <count>', `duration, 1 to ${SECONDS_MAX}`, parseWhole(1, SECONDS_MAX), SECONDS_DEFAULT)
    .option('--heap', 'record memory in use at the end instead of CPU time')
    .option('--url <address>', 'operators address of the api (default: from OPERATORS_HOST and OPERATORS_PORT)')
    .option('--token <token>', 'bearer token of an admin (default: SECKILL_TOKEN, or a token signed by this command)')
    .option('--out <file>', 'output file (default: api-<time>.cpuprofile or .heapprofile)')
    .addHelpText('after', EXAMPLES)
    .action((_program: string, flags: Flags) => profile(flags));
}

async function profile({ seconds, heap = false, url, token, out }: Flags): Promise<void> {
  const [path, kind] = heap ? ['heap', 'heapprofile'] : ['profile', 'cpuprofile'];
  const base = url ?? addressToAsk(loadConfig(['operators'], process.env).operators);
  if (!URL.canParse(base)) throw new UsageError(`--url ${base} is not an address such as http://127.0.0.1:9103.`);
  const address = new URL(`/debug/${path}?seconds=${seconds}`, base);
  const { status, body } = await ask(address, token ?? adminToken(), seconds);
  if (status !== 200) throw new CliError(`the api answers ${status}: ${detailOf(body)}`);
  const file = out ?? `api-${new Date().toISOString().replace(/[:.]/g, '-')}.${kind}`;
  await writeFile(file, body);
  print(`Saved ${file}, ${Math.ceil(body.length / 1024)} kB.`);
}

async function ask(url: URL, token: string, seconds: number): Promise<{ status: number; body: string }> {
  const signal = AbortSignal.timeout(seconds * 1000 + ANSWER_MS);
  try {
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal });
    return { status: answer.status, body: await answer.text() };
  } catch (error) {
    const { cause } = error as { readonly cause?: unknown };
    const why = cause instanceof Error ? cause.message : String(error);
    throw new CliError(`${url.origin} does not answer: ${why}. Check that it is the port for operators of an api.`, {
      cause: error,
    });
  }
}

const adminToken = (): string =>
  process.env.SECKILL_TOKEN ||
  signerOf(loadConfig(['auth'], process.env).auth)({
    userId: WHO,
    roles: ['admin'],
    ttlMs: TOKEN_MS,
    tokenId: randomUUID(),
  });

function detailOf(body: string): string {
  try {
    return String((JSON.parse(body) as { readonly detail?: unknown }).detail ?? body);
  } catch {
    return body.slice(0, 200);
  }
}

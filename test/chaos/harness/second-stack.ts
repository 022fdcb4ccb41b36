import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { adminPortOf } from '../../helpers/broker.js';
import { REPO_DIR, stackPaths, type StackPaths } from '../../../deploy/local/stack/paths.js';
import { SERVER_NAMES } from '../../../deploy/local/stack/servers/server-spec.js';
import { exchange, REQUEST } from '../../../src/rocketmq/admin/remoting.js';
import { readTopicLists } from '../../../src/rocketmq/admin/topic-lists.js';
import { checkSale, type SaleFigures, waitUntilAtRest } from '../../invariants/check-sale.js';
import { joinLogs } from './op-log.js';
import type { ScenarioContext } from '../context.js';
import { bootOwnStack, type OwnStackParts } from '../own-stacks.js';
import type { Buyers } from './buyers.js';
import { type CommandEnd, RunningCommand } from './commands.js';
import { expectEqual, expectTrue } from './expect.js';
import { openControls, type StackControls } from './stack-controls.js';
import { grantedClock } from './wait.js';

const REST_TIMEOUT_MS = 40_000;

/**
 * Boots an empty second stack on free ports. It ends with the scenario.
 * @returns its controls; programs use it with `env`
 */
export async function bootSecondStack(
  context: ScenarioContext,
  name: string,
  parts: OwnStackParts = {},
): Promise<StackControls> {
  const dir = siblingFolder(context, name);
  const over = new AbortController();
  const booting = bootOwnStack(dir, () => undefined, over.signal, parts);
  context.atEnd(async () => {
    over.abort(new Error('the scenario is over'));
    await booting.then(
      ({ stop }) => stop(),
      () => undefined, // a stack that failed to boot has cleaned up already
    );
    rmSync(dir, { recursive: true, force: true });
  });
  const { stack } = await booting;
  const controls = await openControls(dir, stack.env());
  context.atEnd(() => controls.close());
  return controls;
}

/** Waits until a sale of the second stack is at rest and asserts I1 to I8. */
export async function checkSecondStack({ audit }: StackControls, buyers: Buyers): Promise<SaleFigures> {
  const { saleId, opLog } = buyers;
  const atRest = await waitUntilAtRest(saleId, { ...audit, clock: grantedClock() }, REST_TIMEOUT_MS);
  const { entries, history } = joinLogs([opLog]);
  const { figures, findings } = await checkSale(saleId, audit, entries, { history, mayFail: [] });
  expectEqual(findings, [], `what is wrong with sale ${saleId} of the second stack`);
  expectTrue(atRest, `sale ${saleId} of the second stack is at rest`);
  return figures;
}

/** Folder of a second stack. It is next to the first folder, so that git ignores both. */
export const siblingFolder = ({ stack }: ScenarioContext, name: string): string => `${stack.servers.dir}-${name}`;

/** Tables that even idle programs and the witness write. */
const IDLE_TABLES = ['worker_slots', 'job_leases', 'witness_position'];

/**
 * A fingerprint of a system: rows by table, keys without a time to live, messages by topic. It changes with any of
 * them.
 */
export interface Fingerprint {
  /** Table → MySQL's checksum over all its rows. */
  readonly tables: Readonly<Record<string, string>>;
  /** Redis key without a time to live → hash over its value. */
  readonly keys: Readonly<Record<string, string>>;
  /** Topic → messages ever stored, without delayed messages. */
  readonly messages: Readonly<Record<string, number>>;
}

/** Takes the fingerprint of a stack without a keeper, at rest. A working stack changes its fingerprint all the time. */
export async function fingerprintOf(stack: StackControls): Promise<Fingerprint> {
  const [tables, keys, messages] = await Promise.all([tablesOf(stack), keysOf(stack), messagesOf(stack)]);
  return { tables, keys, messages };
}

async function tablesOf({ mysql }: StackControls): Promise<Record<string, string>> {
  const known = await mysql.query<{ name: string }>(
    'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY table_name',
  );
  const names = known.map(({ name }) => name).filter((name) => !IDLE_TABLES.includes(name));
  const sums = await mysql.query<{ Table: string; Checksum: string }>(`CHECKSUM TABLE ${names.join()}`);
  return Object.fromEntries(sums.map(({ Table, Checksum }) => [Table, String(Checksum)]));
}

async function keysOf({ redis: { redis } }: StackControls): Promise<Fingerprint['keys']> {
  const held: Record<string, string> = {};
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'COUNT', 1000);
    cursor = next;
    for (const key of keys) {
      if ((await redis.pttl(key)) !== -1) continue; // a cache, or a key that expires
      held[key] = createHash('sha256')
        .update((await redis.dumpBuffer(key)) ?? '')
        .digest('hex');
    }
  } while (cursor !== '0');
  return held;
}

async function messagesOf({ servers }: StackControls): Promise<Record<string, number>> {
  const broker = adminPortOf(servers);
  // the broker itself moves messages of a DELAY topic when they are due
  const topics = readTopicLists().topics.filter(({ attributes }) => attributes['+message.type'] !== 'DELAY');
  const counts = topics.map(async ({ topicName }): Promise<[string, number]> => {
    const { code, remark, body } = await exchange(broker, REQUEST.topicStats, '', { topic: topicName });
    if (code !== 0) throw new Error(remark ?? `the broker refused with code ${code}`);
    // not valid JSON, because objects are used as keys; queues start at 0
    const offsets = [...body.matchAll(/"maxOffset":(\d+)/g)].map(([, offset]) => Number(offset));
    return [topicName, offsets.reduce((sum, offset) => sum + offset, 0)];
  });
  return Object.fromEntries(await Promise.all(counts));
}

const LOCAL_MAIN = join(REPO_DIR, 'deploy/local/main.mjs');

/** Runs `npm run stack -- <verb>` on a folder. The last line is the result. */
export class StackCommands {
  readonly paths: StackPaths;
  readonly #env: ScenarioContext['env'];

  constructor(context: ScenarioContext, dir: string) {
    this.paths = stackPaths(dir);
    this.#env = context.env;
  }

  start(verb: 'up' | 'down' | 'status'): RunningCommand {
    return new RunningCommand(['stack', verb, '--dir', this.paths.dir, '--json'], this.#env, LOCAL_MAIN);
  }

  async run(verb: 'up' | 'down'): Promise<Readonly<Record<string, unknown>>> {
    return resultOf(await this.start(verb).end);
  }

  /** Pid of every server in the order of SERVER_NAMES. Null for a server that does not run. */
  async pids(): Promise<unknown[]> {
    return (await this.start('status').end).lines.map(({ pid }) => pid);
  }
}

export const resultOf = ({ lines, code }: CommandEnd): Readonly<Record<string, unknown>> => ({ ...lines.at(-1), code });

/** The pids of a stack that does not run. */
export const NONE_RUNNING: readonly null[] = SERVER_NAMES.map(() => null);

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BenchError } from '../bench-error.js';
import { runClosedLoop } from '../load/closed-loop.js';
import { assertPassed, BUYERS_PER_SECOND, checkSaleOf, opLogIfAllWon, secondsOf, type Context } from './context.js';
import { cpuTimes, median } from '../session/cpu.js';
import { Program } from '../session/programs.js';

/** Figures of two builds of the api, measured in turn. */
export interface PairedFigures {
  readonly kind: 'paired';
  readonly scenario: 'paired';
  readonly comparison: Comparison;
}

/** Warm-up of both apis before each slice. */
export const WARM_UP_SLICE_SECONDS = 6;

/**
 * Runs `win` in slices, on the api of this checkout and on another one at the same time, each with its own sale and
 * half of the connections. Both use the same servers and the worker and keeper of this checkout, so both must
 * understand its scripts, tables and messages.
 *
 * The slices run at the same time, because neighbours of a virtual machine change its speed by a fifth within seconds.
 * Each pair uses new processes, because a process has a constant cost of its own: two processes of the same build
 * differ by up to 6 % for as long as they live.
 */
export async function paired(context: Context): Promise<PairedFigures> {
  const { options } = context;
  const folder = resolve(options.against ?? '.');
  const main = join(folder, 'dist', 'cli', 'main.js');
  if (!existsSync(main)) throw new BenchError(`${main} is missing: run \`npm run build\` in that checkout first`);
  const seconds = secondsOf(context, 'paired');
  const pairs: Pair[] = [];
  for (let n = 1; n <= options.pairs; n++) {
    const apis = { here: await startApi(context, 'api-here'), there: await startApi(context, 'api-there', main) };
    try {
      await measurePair(context, apis, `pair ${n}, warm-up`, WARM_UP_SLICE_SECONDS);
      pairs.push(await measurePair(context, apis, `pair ${n}`, seconds));
    } finally {
      await Promise.all([apis.here.stop(), apis.there.stop()]);
    }
  }
  return { kind: 'paired', scenario: 'paired', comparison: compare(nameOf(folder), pairs) };
}

function startApi({ session: { env, signal, stack } }: Context, log: string, main?: string): Promise<Program> {
  const logFile = join(stack.dir, 'log', `${log}.log`);
  return Program.start('api', { env, logFile, signal, ...(main === undefined ? {} : { main }) });
}

async function measurePair(
  context: Context,
  { here, there }: { readonly here: Program; readonly there: Program },
  title: string,
  seconds: number,
): Promise<Pair> {
  const { session } = context;
  const [ours, theirs] = await Promise.all([measureApi(context, here, seconds), measureApi(context, there, seconds)]);
  for (const { sale, load, opLog } of [ours, theirs])
    assertPassed(await checkSaleOf(context, sale, [load], opLog), title);
  const pair = { here: ours.slice, there: theirs.slice };
  session.progress(
    `paired: ${title}: ${pair.here.apiMicros.toFixed(1)} and ${pair.there.apiMicros.toFixed(1)} µs per purchase`,
  );
  await session.stores.empty(); // each pair starts on empty tables
  return pair;
}

/** Loads one api while the other api is loaded, too. */
async function measureApi({ session, options, buyers: pool }: Context, api: Program, seconds: number) {
  const buyers = pool.take(seconds * BUYERS_PER_SECOND.win);
  const sale = await session.stores.openSale('paired', buyers.count);
  const connections = Math.ceil(options.connections / 2);
  const path = `/v1/sales/${sale.saleId}/purchases`;
  const before = cpuTimes(api.pid)?.own ?? 0;
  const load = await runClosedLoop({ port: api.port, path, buyers, connections, seconds }, session.signal);
  await session.stores.waitUntilLanded(sale.saleId, load.accepted, session.signal);
  api.assertAlive();
  const apiMicros = (((cpuTimes(api.pid)?.own ?? 0) - before) * 1e6) / Math.max(1, load.accepted);
  const slice: Slice = { apiMicros, accepted: load.accepted };
  return { sale, load, slice, opLog: opLogIfAllWon(buyers, load) };
}

function nameOf(folder: string): string {
  const { stdout, status } = spawnSync('git', ['-C', folder, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : folder;
}

export interface Slice {
  /** CPU of the api per accepted purchase, µs. */
  readonly apiMicros: number;
  readonly accepted: number;
}

/** Two builds, measured at the same time. */
export interface Pair {
  readonly here: Slice;
  readonly there: Slice;
}

export interface Comparison {
  /** Commit or folder of the other build. */
  readonly against: string;
  readonly pairs: readonly Pair[];
  /** Ratios of all pairs, each from `ratioOf`. Above 1, this build costs more. */
  readonly ratio: { readonly min: number; readonly median: number; readonly max: number };
}

/** CPU here ÷ CPU there. */
export const ratioOf = ({ here, there }: Pair): number => here.apiMicros / there.apiMicros;

function compare(against: string, pairs: readonly Pair[]): Comparison {
  const ratios = pairs.map(ratioOf);
  const ratio = { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
  return { against, pairs, ratio };
}

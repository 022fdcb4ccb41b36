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

/** Warm-up of the other api before the first pair, and of ours once more. */
export const WARM_UP_SLICE_SECONDS = 10;

/**
 * Runs `win` in short slices, in turn on the api of this checkout and of another one. Both use the same servers and the
 * worker and keeper of this checkout, so both must understand its scripts, tables and messages.
 */
export async function paired(context: Context): Promise<PairedFigures> {
  const { session, options } = context;
  const folder = resolve(options.against ?? '.');
  const main = join(folder, 'dist', 'cli', 'main.js');
  if (!existsSync(main)) throw new BenchError(`${main} is missing: run \`npm run build\` in that checkout first`);
  const logFile = join(session.stack.dir, 'log', 'api-against.log');
  const other = await Program.start('api', { env: session.env, logFile, signal: session.signal, main });
  const apis = { here: session.program('api'), there: other };
  try {
    for (const which of ['there', 'here'] as const)
      await slice(context, apis[which], `warm-up, ${which}`, WARM_UP_SLICE_SECONDS);
    const seconds = secondsOf(context, 'paired');
    const pairs: Pair[] = [];
    for (const turns of turnsOf(options.pairs)) {
      const slices: Partial<Record<'here' | 'there', Slice>> = {};
      for (const which of turns) slices[which] = await slice(context, apis[which], which, seconds);
      pairs.push(slices as Pair);
    }
    return { kind: 'paired', scenario: 'paired', comparison: compare(nameOf(folder), pairs) };
  } finally {
    await other.stop();
  }
}

/** @throws BenchError when the check of its sale fails */
async function slice(context: Context, api: Program, title: string, seconds: number): Promise<Slice> {
  const { session, options } = context;
  const buyers = context.buyers.take(seconds * BUYERS_PER_SECOND.win);
  const sale = await session.stores.openSale('paired', buyers.count);
  const { connections } = options;
  const path = `/v1/sales/${sale.saleId}/purchases`;
  const before = cpuTimes(api.pid)?.own ?? 0;
  const load = await runClosedLoop({ port: api.port, path, buyers, connections, seconds }, session.signal);
  await session.stores.waitUntilLanded(sale.saleId, load.accepted, session.signal);
  api.assertAlive();
  const apiMicros = (((cpuTimes(api.pid)?.own ?? 0) - before) * 1e6) / Math.max(1, load.accepted);
  const loadMicros = (load.cpuSeconds * 1e6) / Math.max(1, load.answered);
  const verdict = await checkSaleOf(context, sale, [load], opLogIfAllWon(buyers, load));
  assertPassed(verdict, title);
  session.progress(`paired: ${title}: ${load.accepted} accepted, ${apiMicros.toFixed(1)} µs of the api each`);
  await session.stores.empty(); // each slice starts on empty tables
  return { apiMicros, loadMicros, accepted: load.accepted };
}

function nameOf(folder: string): string {
  const { stdout, status } = spawnSync('git', ['-C', folder, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : folder;
}

/** Measures one load of winners on one api. */
export interface Slice {
  /** CPU of the api per accepted purchase, µs. */
  readonly apiMicros: number;
  /** CPU of the load generator per answer, µs: how fast the machine was just then. */
  readonly loadMicros: number;
  readonly accepted: number;
}

/** Two builds, measured in turn within the same minute. */
export interface Pair {
  readonly here: Slice;
  readonly there: Slice;
}

export interface Comparison {
  /** Commit or folder of the other build. */
  readonly against: string;
  readonly pairs: readonly Pair[];
  /** Over all pairs, each by `ratioOf`: above 1, this build costs more. */
  readonly ratio: { readonly min: number; readonly median: number; readonly max: number };
}

/**
 * CPU here ÷ CPU there, each as a multiple of the CPU of the load generator in the same slice. Neighbours of a virtual
 * machine slow down one slice by a fifth and not the next.
 */
export const ratioOf = ({ here, there }: Pair): number =>
  here.apiMicros / here.loadMicros / (there.apiMicros / there.loadMicros);

function compare(against: string, pairs: readonly Pair[]): Comparison {
  const ratios = pairs.map(ratioOf);
  const ratio = { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
  return { against, pairs, ratio };
}

/** Which build has its turn: here there, there here, and so on, so that neither is always the first of its pair. */
function turnsOf(pairs: number): readonly (readonly ['here' | 'there', 'here' | 'there'])[] {
  return Array.from({ length: pairs }, (_, index) => (index % 2 === 0 ? ['here', 'there'] : ['there', 'here']));
}

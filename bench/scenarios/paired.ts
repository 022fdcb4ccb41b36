import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openStack } from '../../deploy/local/stack/stack.js';
import { BenchError } from '../bench-error.js';
import { runClosedLoop } from '../load/closed-loop.js';
import { microsEach, sampleCpu } from '../measure.js';
import { cpuTimes, median } from '../session/cpu.js';
import { commitOf } from '../session/machine.js';
import type { Program } from '../session/programs.js';
import type { ProcessName, Session } from '../session/session.js';
import {
  assertPassed,
  BUYERS_PER_SECOND,
  checkSaleOf,
  opLogIfAllWon,
  secondsOf,
  startApi,
  type Context,
} from './context.js';
import type { FleetFigures, FleetRow } from './fleet.js';
import { warmUp, win } from './win.js';

/** Figures of two builds of the api, measured in turn. */
export interface PairedFigures {
  readonly kind: 'paired';
  readonly scenario: 'paired';
  /** Commit or folder of the other build. */
  readonly against: string;
  readonly pairs: readonly Pair[];
  /** Ratios of all pairs, each from `ratioOf`. Above 1, this build costs more. */
  readonly ratio: { readonly min: number; readonly median: number; readonly max: number };
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
export async function paired(context: Context): Promise<PairedFigures | FleetFigures> {
  const { options } = context;
  const [, name, value = ''] = /^([A-Z_]+)=(.*)$/.exec(options.against ?? '') ?? [];
  if (name !== undefined) return pairedSettings(context, name, value);
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
  const ratios = pairs.map(ratioOf);
  const ratio = { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
  return { kind: 'paired', scenario: 'paired', against: commitOf(folder) ?? folder, pairs, ratio };
}

/**
 * Runs `win` in slices, in turn with another value of a setting and with its own. MySQL and all programs start anew for
 * each slice, because WITNESS also gives MySQL its binary log. The last slice has the own value, for the next scenario.
 */
async function pairedSettings(context: Context, name: string, value: string): Promise<FleetFigures> {
  const { session, options } = context;
  const { dir, durability, pairs } = options;
  const [own, other] = [`${name}=${process.env[name] ?? 'unset'}`, `${name}=${value}`];
  const rows: FleetRow[] = [];
  for (let left = 2 * pairs; left > 0; left--) {
    const isOwn = left % 4 < 2;
    const [title, changes] = isOwn ? [own, {}] : [other, { [name]: value }];
    const mysql = openStack({ dir, durability, env: { ...process.env, ...changes } }).server('mysql');
    await mysql.stop();
    await mysql.start();
    await mysql.waitReady({ signal: session.signal });
    await session.restart(changes);
    await warmUp(context, WARM_UP_SLICE_SECONDS);
    const before = sampleCpu(session).processes;
    const figures = await win(context, secondsOf(context, 'paired'));
    assertPassed(figures.verdict, title);
    await untilIdle(session);
    const cpuMicros = microsEach(before, sampleCpu(session).processes, figures.verdict.accepted);
    rows.push({ ...figures, title, cpuMicros });
    await session.stores.empty();
  }
  const medians = [other, own].map((title) => medianOf(rows.filter((row) => row.title === title)));
  return { kind: 'fleet', scenario: 'paired', rows: [...rows, ...medians] };
}

/** Waits until the keeper uses less than a tenth of a core: its jobs and the witness are behind the orders. */
async function untilIdle(session: Session): Promise<void> {
  for (let busy = Infinity; busy > 0.2;) {
    const before = sampleCpu(session).processes.keeper;
    await sleep(2000, undefined, { signal: session.signal });
    busy = sampleCpu(session).processes.keeper - before;
  }
}

function medianOf(rows: readonly FleetRow[]): FleetRow {
  const of = (read: (row: FleetRow) => number): number => median(rows.map(read));
  const names = Object.keys(rows[0]?.cpuMicros ?? {}) as ProcessName[];
  const micros = names.map((name) => [name, of((row) => row.cpuMicros[name])]);
  return {
    title: `${rows[0]?.title}, median`,
    landedPerSecond: of((row) => row.landedPerSecond),
    batchSizeMean: of((row) => row.batchSizeMean),
    cpuMicros: Object.fromEntries(micros) as FleetRow['cpuMicros'],
  };
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

/** CPU here ÷ CPU there. */
export const ratioOf = ({ here, there }: Pair): number => here.apiMicros / there.apiMicros;

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BenchError } from '../bench-error.js';
import { compare, turnsOf, type Pair, type Slice } from '../paired/comparison.js';
import type { PairedFigures } from '../results.js';
import { cpuTimes, yardstickMicros } from '../session/cpu.js';
import { Program } from '../session/programs.js';
import { BUYERS_PER_SECOND, checkBooks, everybodyWon, secondsOf, type Context } from './context.js';

/** Of the other api, before the first pair, and of ours once more. */
export const WARM_UP_SLICE_SECONDS = 10;

/**
 * `win` in short slices, in turn on the api of this checkout and on that of another one, on the same servers with the
 * worker and keeper of this one. Needs scripts, tables and messages that both understand.
 */
export async function paired(context: Context): Promise<PairedFigures> {
  const { session, options } = context;
  const folder = resolve(options.against ?? '.');
  const main = join(folder, 'dist', 'cli', 'main.js');
  if (!existsSync(main)) throw new BenchError(`${main} is not there: run \`npm run build\` in that checkout first`);
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

/** @throws BenchError when its books are wrong */
async function slice(context: Context, api: Program, title: string, seconds: number): Promise<Slice> {
  const { session, generator, options } = context;
  const buyers = context.buyers.take(seconds * BUYERS_PER_SECOND.win);
  const sale = await session.books.openSale('paired', buyers.count);
  const { connections } = options;
  const path = `/v1/sales/${sale.saleId}/purchases`;
  const yardstick = yardstickMicros();
  const before = cpuTimes(api.pid)?.own ?? 0;
  const load = await generator.run({ port: api.port, path, buyers, connections, seconds }, session.signal);
  await session.books.waitUntilLanded(sale.saleId, load.accepted, session.signal);
  api.assertAlive();
  const apiMicros = (((cpuTimes(api.pid)?.own ?? 0) - before) * 1e6) / Math.max(1, load.accepted);
  const books = await checkBooks(context, sale, [load], everybodyWon(buyers, load));
  if (books.problems.length > 0) throw new BenchError(`the books of a slice are wrong: ${books.problems.join('; ')}`);
  session.say(`paired: ${title}: ${load.accepted} accepted, ${apiMicros.toFixed(1)} µs of the api each`);
  await session.books.empty(); // each slice starts with books of the same size
  return { apiMicros, accepted: load.accepted, yardstickMicros: yardstick };
}

function nameOf(folder: string): string {
  const { stdout, status } = spawnSync('git', ['-C', folder, 'rev-parse', '--short', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : folder;
}

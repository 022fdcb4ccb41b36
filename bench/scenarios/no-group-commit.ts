import { BenchError } from '../bench-error.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { BUYERS_PER_SECOND, secondsOf, type Context } from './context.js';
import { winLoad } from './win.js';

const TRY_SECONDS = 4;
/** For the JIT of an api that was just started; its broker and worker are warm. */
const WARM_SECONDS = 4;

/**
 * `win` with batches of one: what group commit is worth. It gets the number in flight that is best for it, found in the
 * same run, because one that suits batches of 128 would starve it.
 */
export async function noGroupCommit(context: Context): Promise<LoadFigures> {
  const tried = new Map<number, number>();
  for (const inFlight of context.options.inFlight) {
    await restartApi(context, inFlight);
    tried.set(inFlight, await landedPerSecond(context, `in flight ${inFlight}`, TRY_SECONDS));
  }
  const [best] = [...tried].sort(([, a], [, b]) => b - a)[0] ?? [];
  if (best === undefined) throw new BenchError('--in-flight names no value to try');
  if (best !== context.options.inFlight.at(-1)) await restartApi(context, best);
  const seconds = secondsOf(context, 'no-group-commit');
  const load = { title: 'no-group-commit', seconds, perSecond: BUYERS_PER_SECOND.single };
  const { measured, books } = await winLoad(context, load);
  await context.session.restart({}, ['api']);
  const about = `BATCH_SIZE_MAX=1, BATCH_IN_FLIGHT_MAX=${best}, the best of ${[...tried.keys()].join(', ')}`;
  const extra = Object.fromEntries([...tried].map(([inFlight, rate]) => [`landed/s, ${inFlight} in flight`, rate]));
  return loadFigures('no-group-commit', about, { measured, books, per: 'accepted' }, extra);
}

async function restartApi(context: Context, inFlight: number): Promise<void> {
  await context.session.restart({ BATCH_SIZE_MAX: '1', BATCH_IN_FLIGHT_MAX: String(inFlight) }, ['api']);
  await landedPerSecond(context, 'warming the api', WARM_SECONDS);
}

async function landedPerSecond(context: Context, title: string, seconds: number): Promise<number> {
  const { measured, books } = await winLoad(context, { title, seconds, perSecond: BUYERS_PER_SECOND.single });
  if (books.problems.length > 0) throw new BenchError(`the books of a trial are wrong: ${books.problems.join('; ')}`);
  return measured.landed / measured.landedSeconds;
}

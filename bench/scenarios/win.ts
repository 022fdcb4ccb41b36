import { setTimeout as sleep } from 'node:timers/promises';
import { BenchError } from '../bench-error.js';
import type { Measured } from '../measure.js';
import { loadFigures, type LoadFigures } from '../results.js';
import {
  assertPassed,
  BUYERS_PER_SECOND,
  checkSaleOf,
  closedLoop,
  opLogIfAllWon,
  secondsOf,
  type Context,
} from './context.js';
import { median, residentBytes } from '../session/cpu.js';
import { scrape, sumOf } from '../session/metrics.js';
import type { Session } from '../session/session.js';
import type { SaleVerdict } from '../session/stores.js';

/** Every buyer is new and wins one unit: measures the whole path at full speed. */
export async function win(context: Context, seconds = secondsOf(context, 'win')): Promise<LoadFigures> {
  const { measured, verdict } = await winLoad(context, { title: 'win', seconds, perSecond: BUYERS_PER_SECOND.win });
  const about = `${context.options.connections} connections, ${seconds} s`;
  return loadFigures('win', about, { measured, verdict, per: 'accepted' });
}

interface WinLoad {
  readonly title: string;
  readonly seconds: number;
  readonly perSecond: number;
}

/** Runs one load of winners on a new sale and checks the sale afterwards. */
async function winLoad(
  context: Context,
  { title, seconds, perSecond }: WinLoad,
): Promise<{ measured: Measured; verdict: SaleVerdict }> {
  const { session } = context;
  const buyers = context.buyers.take(seconds * perSecond);
  const sale = await session.stores.openSale(title, buyers.count);
  session.progress(`${title}: ${seconds} s of load`);
  const measured = await closedLoop(context, sale.saleId, { buyers, seconds });
  session.progress(
    `${title}: ${measured.load.accepted} accepted, ${Math.round(measured.landed / measured.landedSeconds)}/s landed`,
  );
  const verdict = await checkSaleOf(context, sale, [measured.load], opLogIfAllWon(buyers, measured.load));
  return { measured, verdict };
}

/** Seconds of load for each value of --in-flight. */
const TRY_SECONDS = 4;
/** Warms up the JIT of a new api. Its broker and worker are already warm. */
const WARM_SECONDS = 4;

/**
 * Runs `win` with batches of one, to show what group commit gains. Uses the best number of batches in flight, found in
 * the same run, because the number for full batches would starve it.
 */
export async function noGroupCommit(context: Context): Promise<LoadFigures> {
  const tried = new Map<number, number>();
  for (const inFlight of context.options.inFlight) {
    await restartApi(context, inFlight);
    tried.set(inFlight, await landedPerSecond(context, `in flight ${inFlight}`, TRY_SECONDS));
  }
  const [best] = [...tried].sort(([, a], [, b]) => b - a)[0] ?? [];
  if (best === undefined) throw new BenchError('--in-flight has no value to try');
  if (best !== context.options.inFlight.at(-1)) await restartApi(context, best);
  const seconds = secondsOf(context, 'no-group-commit');
  const load = { title: 'no-group-commit', seconds, perSecond: BUYERS_PER_SECOND.single };
  const { measured, verdict } = await winLoad(context, load);
  await context.session.restart({}, ['api']);
  const about = `BATCH_SIZE_MAX=1, BATCH_IN_FLIGHT_MAX=${best}, the best of ${[...tried.keys()].join(', ')}`;
  const extra = Object.fromEntries([...tried].map(([inFlight, rate]) => [`landed/s, ${inFlight} in flight`, rate]));
  return loadFigures('no-group-commit', about, { measured, verdict, per: 'accepted' }, extra);
}

async function restartApi(context: Context, inFlight: number): Promise<void> {
  await context.session.restart({ BATCH_SIZE_MAX: '1', BATCH_IN_FLIGHT_MAX: String(inFlight) }, ['api']);
  await landedPerSecond(context, 'warming the api', WARM_SECONDS);
}

async function landedPerSecond(context: Context, title: string, seconds: number): Promise<number> {
  const { measured, verdict } = await winLoad(context, { title, seconds, perSecond: BUYERS_PER_SECOND.single });
  assertPassed(verdict, title);
  return measured.landed / measured.landedSeconds;
}

const SAMPLE_MS = 1000;
const MIB = 1024 ** 2;

interface MemorySample {
  /** Seconds since the first sample. */
  readonly at: number;
  /** MiB. */
  readonly resident: number;
  readonly heap: number;
}

/** Runs `win` for longer and samples the memory of the api each second: it must not grow with the units sold. */
export async function memory(context: Context): Promise<LoadFigures> {
  const seconds = secondsOf(context, 'memory');
  const watch = watchMemory(context.session);
  const load = { title: 'memory', seconds, perSecond: BUYERS_PER_SECOND.win };
  const { measured, verdict } = await winLoad(context, load).finally(() => watch.stop());
  const samples = watch.samples.filter(({ at }) => at <= seconds);
  const about = `win for ${seconds} s, ${samples.length} samples of the api`;
  const extra = { ...trend('rss', samples, 'resident', median), ...trend('heap floor', samples, 'heap', lowest) };
  return loadFigures('memory', about, { measured, verdict, per: 'accepted' }, extra);
}

const lowest = (values: readonly number[]): number => Math.min(...values);

/** Garbage makes the heap vary. The lowest value of each third is closest to the heap without garbage. */
function trend(
  name: string,
  samples: readonly MemorySample[],
  field: 'resident' | 'heap',
  typical: (values: readonly number[]) => number,
): Record<string, number> {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const values = samples.map((sample) => sample[field]);
  return {
    [`${name} first third, MiB`]: typical(values.slice(0, third)),
    [`${name} last third, MiB`]: typical(values.slice(-third)),
  };
}

function watchMemory(session: Session): { readonly samples: readonly MemorySample[]; stop(): Promise<void> } {
  const samples: MemorySample[] = [];
  const stopping = new AbortController();
  const { pid, operatorsPort } = session.program('api');
  const startedAt = performance.now();
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const heap = sumOf(await scrape(operatorsPort), 'nodejs_heap_size_used_bytes');
      const at = (performance.now() - startedAt) / 1000;
      samples.push({ at, resident: (residentBytes(pid) ?? 0) / MIB, heap: heap / MIB });
      await sleep(SAMPLE_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const done = loop();
  done.catch(() => undefined); // `stop` throws its error
  return {
    samples,
    stop: async () => {
      stopping.abort();
      await done;
    },
  };
}

/** First seconds of load on a new broker, in batches of one, because its JIT needs many messages. */
const SINGLE_SECONDS = 20;
/** For a broker that was just started. Measured: its compilers use 0.7 of a core after 30 s and 0.06 after 90 s. */
const FRESH_BROKER_SECONDS = 80;
const FRESH_PROGRAMS_SECONDS = 10;
/** The longest load on one sale. Each load starts at the first of the prepared buyers. */
export const WARM_UP_ROUND_SECONDS = 20;
/** Batches of one give the broker the most messages. */
const MANY_MESSAGES = { BATCH_SIZE_MAX: '1', BATCH_IN_FLIGHT_MAX: '64' };

export const warmUpSeconds = ({ session, options }: Pick<Context, 'session' | 'options'>): number =>
  options.warmUpSeconds ?? (session.brokerIsFresh ? FRESH_BROKER_SECONDS : FRESH_PROGRAMS_SECONDS);

/**
 * Warms up the system with a load that is checked but not measured, because a broker in service is warm.
 * @throws BenchError if a check fails
 */
export async function warmUp(context: Context, seconds: number): Promise<void> {
  const { session } = context;
  const single = session.brokerIsFresh ? Math.min(SINGLE_SECONDS, Math.max(0, seconds - FRESH_PROGRAMS_SECONDS)) : 0;
  if (single > 0) {
    await session.restart(MANY_MESSAGES, ['api']);
    await load(context, 'warm-up, batches of one', single, BUYERS_PER_SECOND.single);
    await session.restart({}, ['api']);
  }
  for (let left = seconds - single; left > 0; left -= WARM_UP_ROUND_SECONDS) {
    await load(context, 'warm-up', Math.min(left, WARM_UP_ROUND_SECONDS), BUYERS_PER_SECOND.win);
    await session.stores.empty();
  }
}

async function load(context: Context, title: string, seconds: number, perSecond: number): Promise<void> {
  const { verdict } = await winLoad(context, { title, seconds, perSecond });
  assertPassed(verdict, title);
}

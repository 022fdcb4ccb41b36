import { BenchError } from '../bench-error.js';
import { BUYERS_PER_SECOND, type Context } from './context.js';
import { winLoad } from './win.js';

/** Of a fresh broker, first: batches of one, since its JIT waits for messages and not for seconds. */
const SINGLE_SECONDS = 20;
/** A broker that was just started; measured, its compilers take 0.7 of a core at 30 s and 0.06 at 90 s. */
const FRESH_BROKER_SECONDS = 80;
const FRESH_PROGRAMS_SECONDS = 10;
/** The longest load on one sale: each takes the prepared buyers from the first one on. */
export const WARM_UP_ROUND_SECONDS = 20;
/** Batches of one: as many messages as the broker takes, from as many slots as suit them. */
const MANY_MESSAGES = { BATCH_SIZE_MAX: '1', BATCH_IN_FLIGHT_MAX: '64' };

export const warmUpSeconds = ({ session, options }: Pick<Context, 'session' | 'options'>): number =>
  options.warmUpSeconds ?? (session.brokerIsFresh ? FRESH_BROKER_SECONDS : FRESH_PROGRAMS_SECONDS);

/**
 * Load that is not measured, for what a broker in service has behind it. The books are compared here too: an order lost
 * here is lost.
 * @throws BenchError when they are wrong
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
    await session.books.empty();
  }
}

async function load(context: Context, title: string, seconds: number, perSecond: number): Promise<void> {
  const { books } = await winLoad(context, { title, seconds, perSecond });
  if (books.problems.length > 0)
    throw new BenchError(`the books of the ${title} are wrong: ${books.problems.join('; ')}`);
}

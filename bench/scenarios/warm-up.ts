import { BenchError } from '../bench-error.js';
import { BUYERS_PER_SECOND, type Context } from './context.js';
import { winLoad } from './win.js';

/** A broker that was just started: its JIT first, then that of our programs. */
const FRESH_BROKER_SECONDS = 30;
const FRESH_PROGRAMS_SECONDS = 10;
/** Batches of one: as many messages as the broker takes, from as many slots as suit them. */
const MANY_MESSAGES = { BATCH_SIZE_MAX: '1', BATCH_IN_FLIGHT_MAX: '64' };

export const warmUpSeconds = ({ session, options }: Pick<Context, 'session' | 'options'>): number =>
  options.warmUpSeconds ?? (session.brokerIsFresh ? FRESH_BROKER_SECONDS : FRESH_PROGRAMS_SECONDS);

/**
 * Load that is not measured. What the JIT of the broker waits for is messages, not seconds: with full batches a fresh
 * one still costs twice as much after 25 s as it will later, so most of its warm-up is batches of one. A broker in
 * service has that behind it. The books are compared here too: an order lost here is lost.
 * @throws BenchError when they are wrong
 */
export async function warmUp(context: Context, seconds: number): Promise<void> {
  if (seconds === 0) return;
  const { session } = context;
  const single = session.brokerIsFresh ? Math.max(0, seconds - FRESH_PROGRAMS_SECONDS) : 0;
  if (single > 0) {
    await session.restart(MANY_MESSAGES, ['api']);
    await load(context, 'warm-up, batches of one', single, BUYERS_PER_SECOND.single);
    await session.restart({}, ['api']);
  }
  await load(context, 'warm-up', seconds - single, BUYERS_PER_SECOND.win);
  await session.books.empty();
}

async function load(context: Context, title: string, seconds: number, perSecond: number): Promise<void> {
  const { books } = await winLoad(context, { title, seconds, perSecond });
  if (books.problems.length > 0)
    throw new BenchError(`the books of the ${title} are wrong: ${books.problems.join('; ')}`);
}

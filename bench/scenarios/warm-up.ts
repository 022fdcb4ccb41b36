import { BenchError } from '../bench-error.js';
import { BUYERS_PER_SECOND, type Context } from './context.js';
import { winLoad } from './win.js';

/** The JIT of a fresh broker takes a core for its first 20 s of load; that of Node is done after some seconds. */
const FRESH_BROKER_SECONDS = 25;
const FRESH_PROGRAMS_SECONDS = 8;

export const warmUpSeconds = ({ session, options }: Pick<Context, 'session' | 'options'>): number =>
  options.warmUpSeconds ?? (session.brokerIsFresh ? FRESH_BROKER_SECONDS : FRESH_PROGRAMS_SECONDS);

/**
 * Load that is not measured. Its books are compared all the same: an order lost here is lost.
 * @throws BenchError when they are wrong
 */
export async function warmUp(context: Context, seconds: number): Promise<void> {
  if (seconds === 0) return;
  const { books } = await winLoad(context, { title: 'warm-up', seconds, perSecond: BUYERS_PER_SECOND.win });
  if (books.problems.length > 0)
    throw new BenchError(`the books of the warm-up are wrong: ${books.problems.join('; ')}`);
  await context.session.books.empty();
}

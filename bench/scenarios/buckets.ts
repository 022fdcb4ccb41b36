import { BenchError } from '../bench-error.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { BUYERS_PER_SECOND, secondsOf, type Context } from './context.js';
import { winLoad } from './win.js';

/** The same load on a sale of one bucket just before and just after, so that a busy moment of the machine meets both. */
export async function buckets(context: Context): Promise<LoadFigures> {
  const { session, options } = context;
  const seconds = secondsOf(context, 'buckets');
  const load = { seconds, perSecond: BUYERS_PER_SECOND.win };
  const onOne = async (): Promise<number> => {
    const { measured, books } = await winLoad(context, { title: 'one bucket', ...load });
    if (books.problems.length > 0)
      throw new BenchError(`the books of one bucket are wrong: ${books.problems.join('; ')}`);
    await session.books.empty();
    return measured.landed / measured.landedSeconds;
  };
  const before = await onOne();
  const { measured, books } = await winLoad(context, {
    title: `${options.buckets} buckets`,
    ...load,
    buckets: options.buckets,
  });
  const figures = (extra: LoadFigures['extra'] = {}): LoadFigures => {
    const about = `a sale of ${options.buckets} buckets; ${options.connections} connections, ${seconds} s`;
    return loadFigures('buckets', about, { measured, books, per: 'accepted' }, extra);
  };
  if (books.problems.length > 0) return figures(); // its data stays, for whoever wants to know why
  await session.books.empty();
  const after = await onOne();
  const one = (before + after) / 2;
  return figures({
    'one bucket, landed/s': one,
    'share of one bucket': measured.landed / measured.landedSeconds / one,
  });
}

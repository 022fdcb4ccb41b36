import { loadFigures, type LoadFigures } from '../results.js';
import { BUYERS_PER_SECOND, checkBooks, closedLoop, everybodyWon, secondsOf, type Context } from './context.js';

/** Every buyer is new and wins one unit: the whole path, as fast as it goes. */
export async function win(context: Context): Promise<LoadFigures> {
  const seconds = secondsOf(context, 'win');
  const { measured, books } = await winLoad(context, { title: 'win', seconds, perSecond: BUYERS_PER_SECOND.win });
  const about = `${context.options.connections} connections, ${seconds} s`;
  return loadFigures('win', about, { measured, books, per: 'accepted' });
}

export interface WinLoad {
  readonly title: string;
  readonly seconds: number;
  readonly perSecond: number;
  /** Of its sale; absent: one. */
  readonly buckets?: number;
}

/** One load of winners on a sale of its own, with its books compared. */
export async function winLoad(
  context: Context,
  { title, seconds, perSecond, buckets }: WinLoad,
): Promise<{ measured: Awaited<ReturnType<typeof closedLoop>>; books: Awaited<ReturnType<typeof checkBooks>> }> {
  const { session } = context;
  const buyers = context.buyers.take(seconds * perSecond);
  const sale = await session.books.openSale(title, buyers.count, buckets);
  session.say(`${title}: ${seconds} s of load`);
  const measured = await closedLoop(context, sale.saleId, { buyers, seconds });
  session.say(
    `${title}: ${measured.load.accepted} accepted, ${Math.round(measured.landed / measured.landedSeconds)}/s landed`,
  );
  const books = await checkBooks(context, sale, [measured.load], everybodyWon(buyers, measured.load));
  return { measured, books };
}

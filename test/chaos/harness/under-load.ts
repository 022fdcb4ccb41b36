import type { Arena } from '../arena.js';
import type { Buyers } from './buyers.js';

/** How often a row may kill under load until something was open: that is a matter of chance. */
export const KILLS_MAX = 3;

export interface Rush {
  readonly parallel: number;
  /** So many of them have heard yes before it happens. */
  readonly accepted: number;
  /** Begins their ids; never the same twice. */
  readonly prefix: string;
}

/** New buyers press until some have heard yes; what happens then happens to those that press at that moment. */
export async function underLoad(
  arena: Arena,
  buyers: Buyers,
  { parallel, accepted, prefix }: Rush,
  happens: () => Promise<void>,
): Promise<{ readonly unheard: number }> {
  const { opLog, saleId } = buyers;
  const [okBefore, unknownBefore] = [opLog.count('ok'), opLog.count('unknown')];
  const load = buyers.startLoad({ parallel, pauseMs: 5, tries: 1, prefix });
  await arena.until('the load is on', () => opLog.count('ok') - okBefore > accepted, 30_000);
  const open = (): Promise<number> => arena.stack.audit.store.pendingCount({ saleId, bucket: 0 });
  await arena.until('a batch is open', async () => (await open()) > 0); // a moment later it may not be any more
  await happens();
  await load.stop();
  return { unheard: opLog.count('unknown') - unknownBefore };
}

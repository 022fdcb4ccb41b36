import type { Arena } from '../arena.js';
import type { Buyers } from '../harness/buyers.js';
import { standingOf } from '../harness/lost-writes.js';
import { PAYMENT_WINDOW_MS } from './soak-env.js';

/** For the sweep that ends what nobody paid, after the last window has passed. */
const SWEEP_MAX_MS = 60_000;
/** They are looked for every 30 s, and each takes some seconds: enough for fifty after the last kill of Redis. */
export const REBUILT_MAX_MS = 180_000;
/** The last re-drive begins after 30 s and needs as long; the rest is a shared machine. */
const REST_MAX_MS = 120_000;

/**
 * Load and faults are over: whoever does not know asks again, what nobody paid ends, every sale comes to rest and is
 * held against all that its buyers heard.
 * @param all one client for each sale
 * @returns what is wrong, one sentence each
 */
export async function finalCheck(arena: Arena, all: readonly Buyers[]): Promise<string[]> {
  for (const { saleId } of all)
    await arena.until(`sale ${saleId} is rebuilt`, () => isWhole(arena, saleId), REBUILT_MAX_MS);
  for (const buyers of all) await buyers.askAgain();
  await arena.until('every order is paid or has ended', () => noneIsOpen(arena), PAYMENT_WINDOW_MS + SWEEP_MAX_MS, 500);
  const wrong: string[] = [];
  for (const { saleId, opLog } of all) {
    try {
      const { rows } = await arena.rest(saleId, REST_MAX_MS);
      const yes = opLog.count('ok');
      if (rows !== yes) wrong.push(`sale ${saleId}: ${yes} purchases heard yes, and ${rows} have a row`);
    } catch (error) {
      wrong.push((error as Error).message);
    }
  }
  return wrong;
}

/** Closed sales are rebuilt too, one after the other, when buyers of open ones have long been served again. */
async function isWhole({ stack }: Arena, saleId: string): Promise<boolean> {
  const { state, sameServer } = await standingOf(stack, saleId);
  return sameServer && state !== null && state !== 'repair';
}

async function noneIsOpen({ stack }: Arena): Promise<boolean> {
  const sql = "SELECT COUNT(*) AS open FROM orders WHERE state = 'pending_payment'";
  const [row] = await stack.mysql.query<{ open: string }>(sql);
  return Number(row?.open) === 0;
}

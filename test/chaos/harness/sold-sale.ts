import type { Arena } from '../arena.js';
import { userIds, type Buyers } from './buyers.js';
import type { Program } from './programs.js';

// What rows about repairs begin with.

/** Another keeper takes over after two seconds; a lease has to be longer than one statement of MySQL. */
export const REPAIR = { REPAIR_QUIET_MS: '300', REPAIR_LEASE_MS: '2000', MYSQL_QUERY_TIMEOUT_MS: '1500' };
/** A command that the proxy holds back is not given up. */
export const PATIENT = { REDIS_REPLY_TIMEOUT_MS: '15000' };

/** Stands in every key of a sale: a keeper repairs all that need it. */
export const keyOf = (saleId: string): string => `{${saleId}:`;

export interface Sold {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly api: Program;
}

/** A sale that has sold some, with everybody at rest. */
export async function soldSome(arena: Arena, env: Readonly<Record<string, string>> = {}): Promise<Sold> {
  const [api] = await Promise.all([arena.start('api', { env }), arena.start('worker')]);
  const { saleId } = await arena.openSale({ stock: 30 });
  const buyers = arena.buyers(saleId, [api]);
  await buyers.rush(userIds(arena.random.whole(5, 15), 'early-'), 4, { tries: 30 });
  await arena.rest(saleId);
  return { saleId, buyers, api };
}

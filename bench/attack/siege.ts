import { join } from 'node:path';
import type { Sale } from '../../src/core/sale.js';
import { splitSlice, type BuyerPool, type BuyerSlice } from '../load/buyers.js';
import { dressBuyers, dresserOf, NOTHING_MORE } from '../load/dressed-buyers.js';
import { runOpenLoop, type OpenLoopResult } from '../load/open-loop.js';
import type { Session } from '../session/session.js';
import { addressesIn } from './addresses.js';
import { runAttack } from './attack.js';
import { CAPTURED, honestAddresses, SLOW_SOCKETS, type Rates } from './attackers.js';
import { loadOfBoth, type BothLoads } from './attack-figures.js';

/** Who asks: each group with its own buyers, as the books know them. */
export interface Crowds {
  readonly honest: BuyerSlice;
  /** Accounts of the flood. */
  readonly accounts: BuyerSlice;
  /** They buy before the attack, and what they sent is replayed. */
  readonly captured: BuyerSlice;
}

/** Honest buyers and attackers, and what they have in common. */
export interface Siege {
  readonly session: Session;
  readonly crowds: Crowds;
  readonly rates: Rates;
  readonly seconds: number;
  /** Purchases have to be signed. */
  readonly signed: boolean;
}

export function takeCrowds(pool: BuyerPool, { rates, seconds }: Pick<Siege, 'rates' | 'seconds'>): Crowds {
  const [honestCount, accountCount] = [rates.honest * seconds, rates.attack.flood * seconds];
  const [honest, others] = splitSlice(pool.take(honestCount + accountCount + CAPTURED), honestCount);
  const [accounts, captured] = splitSlice(others, accountCount);
  return { honest, accounts, captured };
}

export const purchasePath = ({ saleId }: Sale): string => `/v1/sales/${saleId}/purchases`;

/** Buyers with what this sale asks for beside their tokens. */
export async function dressedFor(sale: Sale, name: keyof Crowds, siege: Siege): Promise<BuyerSlice> {
  const { session, crowds, signed } = siege;
  if (!signed) return crowds[name];
  const what = { ...NOTHING_MORE, signed: true };
  const dresser = dresserOf(what, session.admissionKeys, { saleId: sale.saleId, path: purchasePath(sale) });
  return dressBuyers(crowds[name], join(session.dir, `attack-${name}.bin`), dresser);
}

/** Honest buyers at their rate, from many addresses. */
export function honestLoad(
  { session, rates, seconds }: Siege,
  path: string,
  buyers: BuyerSlice,
): Promise<OpenLoopResult> {
  const connections = honestAddresses(rates.honest);
  const plan = { port: session.program('api').port, path, buyers, connections, seconds, rate: rates.honest };
  return runOpenLoop({ ...plan, addresses: addressesIn('honest', connections) }, session.signal);
}

/** The same, and attackers beside them, in a process of their own. */
export async function bothLoads(
  { session, rates, seconds, ...siege }: Siege,
  path: string,
  { honest, accounts, captured }: Crowds,
): Promise<BothLoads> {
  const { port } = session.program('api');
  const plan = { port, path, seconds, rates: rates.attack, accounts, captured, slowSockets: SLOW_SOCKETS };
  const [buyers, attackers] = await Promise.all([
    honestLoad({ session, rates, seconds, ...siege }, path, honest),
    runAttack(plan, session.signal),
  ]);
  return loadOfBoth(buyers, attackers);
}

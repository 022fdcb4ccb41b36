/** What attackers send. Slow ones do not count among them: they never finish a request. */
export const ATTACKS = ['flood', 'forged', 'replayed', 'oversized'] as const;
export type Attack = (typeof ATTACKS)[number];

/** Of all requests, honest ones included. */
const HONEST_SHARE = 0.2;

/** Parts of the attack. A flood of accounts that may buy is the worst of them: each one let through takes a unit. */
const PARTS: Readonly<Record<Attack, number>> = { flood: 0.5, forged: 0.3, replayed: 0.15, oversized: 0.05 };

/** Keep-alive connections of each kind, and the addresses they come from: a flood has few. */
export const CROWDS: Readonly<Record<Attack, { readonly connections: number; readonly addresses: number }>> = {
  flood: { connections: 64, addresses: 8 },
  forged: { connections: 64, addresses: 64 },
  replayed: { connections: 64, addresses: 64 },
  oversized: { connections: 64, addresses: 64 },
};

/** Purchases that were overheard: enough that the limit of a user does not stop all who replay them. */
export const CAPTURED = 50;

/** Connections that send a header now and then and never the last one. */
export const SLOW_SOCKETS = 200;

export interface Rates {
  /** Requests per second. */
  readonly honest: number;
  readonly attack: Readonly<Record<Attack, number>>;
}

/**
 * Splits a rate among honest buyers and attackers.
 * @param perSecond all requests, honest ones included
 * @param canReplay false: no signature is asked for, so there is none to replay, and the flood takes that part over
 */
export function splitRate(perSecond: number, canReplay: boolean): Rates {
  const honest = Math.round(perSecond * HONEST_SHARE);
  const all = perSecond - honest;
  const [forged, oversized] = [Math.round(all * PARTS.forged), Math.round(all * PARTS.oversized)];
  const replayed = canReplay ? Math.round(all * PARTS.replayed) : 0;
  return { honest, attack: { flood: all - forged - oversized - replayed, forged, replayed, oversized } };
}

/** Attacks per second, of every kind. */
export const attacksPerSecond = ({ attack }: Rates): number =>
  Object.values(attack).reduce((sum, rate) => sum + rate, 0);

/** An honest address asks this often at most, once a second on average for each of five neighbours. */
const ASKS_PER_ADDRESS = 5;

/** Addresses that so many honest requests per second come from, one connection each. */
export const honestAddresses = (perSecond: number): number => Math.ceil(perSecond / ASKS_PER_ADDRESS);

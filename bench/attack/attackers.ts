/** Kinds of attackers and their requests. Slow attackers are not among them, because they never finish a request. */
export const ATTACKS = ['flood', 'forged', 'replayed', 'oversized'] as const;
export type Attack = (typeof ATTACKS)[number];

/** Share of all requests, including honest ones. */
const HONEST_SHARE = 0.2;

/** Parts of the attack. The worst is a flood of accounts that may buy, because each that gets through takes a unit. */
const PARTS: Readonly<Record<Attack, number>> = { flood: 0.5, forged: 0.3, replayed: 0.15, oversized: 0.05 };

/** Keep-alive connections of each kind, and the number of addresses from which they come. A flood has few addresses. */
export const SOURCES: Readonly<Record<Attack, { readonly connections: number; readonly addresses: number }>> = {
  flood: { connections: 64, addresses: 8 },
  forged: { connections: 64, addresses: 64 },
  replayed: { connections: 64, addresses: 64 },
  oversized: { connections: 64, addresses: 64 },
};

/** Number of purchases whose requests are replayed: enough that the limit of a user does not stop every replay. */
export const CAPTURED = 50;

/** Connections that send a header now and then, but never the last one. */
export const SLOW_SOCKETS = 200;

export interface Rates {
  /** Requests per second. */
  readonly honest: number;
  readonly attack: Readonly<Record<Attack, number>>;
}

/**
 * Splits a rate among honest buyers and attackers.
 * @param perSecond all requests, including honest ones
 */
export function splitRate(perSecond: number): Rates {
  const honest = Math.round(perSecond * HONEST_SHARE);
  const all = perSecond - honest;
  const part = (kind: Exclude<Attack, 'flood'>): number => Math.round(all * PARTS[kind]);
  const others = { forged: part('forged'), replayed: part('replayed'), oversized: part('oversized') };
  return { honest, attack: { flood: all - others.forged - others.replayed - others.oversized, ...others } };
}

/** Attacks per second, of every kind. */
export const attacksPerSecond = ({ attack }: Rates): number =>
  Object.values(attack).reduce((sum, rate) => sum + rate, 0);

/** Maximum rate of an honest address: on average once a second for each of five people who share it. */
const ASKS_PER_ADDRESS = 5;

/** Returns the number of addresses that this rate of honest requests needs, with one connection each. */
export const honestAddresses = (perSecond: number): number => Math.ceil(perSecond / ASKS_PER_ADDRESS);

/**
 * Clients with addresses of their own. All of 127.0.0.0/8 is this machine, so a socket can be bound to any of these
 * addresses, and the api sees it as the peer. The api believes no header and trusts no proxy.
 */

/** Second part of the address, different for each kind of client. */
const NETWORKS = { honest: 1, flood: 66, forged: 67, replayed: 68, oversized: 69, slow: 70 } as const;
export type NetworkName = keyof typeof NETWORKS;

/** .0 and .255 do not look like hosts. */
const HOSTS = 250;

/** The n-th address of a network, from 0; 62,500 of them differ. */
export function addressIn(network: NetworkName, place: number): string {
  return `127.${NETWORKS[network]}.${Math.floor(place / HOSTS) % HOSTS}.${(place % HOSTS) + 1}`;
}

export const addressesIn = (network: NetworkName, count: number): string[] =>
  Array.from({ length: count }, (_, place) => addressIn(network, place));

/** The window of a limit. An honest address sends up to 50 requests in it, see `honestAddresses`. */
const WINDOW_MS = 10_000;

/**
 * Returns the rules of a typical operator: one address is denied, an address may send twice what an honest one needs, a
 * buyer has a few attempts, and a global limit protects the system.
 * @param signKeys keys (`id:secret`) of the instance
 * @param saleIds sales whose purchases have to be signed
 */
export const attackRules = (signKeys: string, saleIds: readonly string[]): object => ({
  lists: {
    mode: 'on',
    addresses: { deny: [addressIn('flood', 0), '192.0.2.0/24', '198.51.100.0/24'] },
    agents: { deny: ['python-requests', 'headless'] },
  },
  limits: {
    mode: 'on',
    purchase: {
      ip: { limit: 100, windowMs: WINDOW_MS },
      user: { limit: 10, windowMs: WINDOW_MS },
      global: { ratePerSecond: 20_000, burst: 5000 },
    },
    leaky: { ratePerSecond: 8000, waitMaxMs: 200 },
  },
  sign: { mode: 'on', sales: saleIds, keys: keyIdsOf(signKeys) },
});

/** Returns the ids in `id:secret,id:secret`. */
export const keyIdsOf = (keys: string): string[] =>
  keys.split(',').map((key) => key.slice(0, Math.max(0, key.indexOf(':'))));

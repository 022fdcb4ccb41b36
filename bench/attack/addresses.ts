/**
 * Clients with addresses of their own: all of 127.0.0.0/8 is this machine, so a socket can be bound to any of them, and
 * the api sees it as the other end of the connection. No header is believed, no proxy is trusted.
 */

/** Second part of the address: who comes from there. */
const NETWORKS = { honest: 1, flood: 66, forged: 67, replayed: 68, oversized: 69, slow: 70 } as const;
export type NetworkName = keyof typeof NETWORKS;

/** .0 and .255 look like no host. */
const HOSTS = 250;

/** The n-th address of a network, from 0; 62,500 of them differ. */
export function addressIn(network: NetworkName, place: number): string {
  return `127.${NETWORKS[network]}.${Math.floor(place / HOSTS) % HOSTS}.${(place % HOSTS) + 1}`;
}

export const addressesIn = (network: NetworkName, count: number): string[] =>
  Array.from({ length: count }, (_, place) => addressIn(network, place));

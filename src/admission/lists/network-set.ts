import { readNetwork, type Address } from '../../core/ip-address.js';

/**
 * Holds one hash per prefix length, so ten thousand networks cost one look-up per length, seldom more than five.
 * `net.BlockList` tries rules one by one: 97 µs for ten thousand, against 0.2 µs here
 * (docs/decisions/0021-libraries-in-admission.md).
 */
export class NetworkSet {
  /** The first bits of each network, by prefix length. */
  readonly #ipv4: [divisor: number, starts: Set<number>][] = [];
  readonly #ipv6: [shift: bigint, starts: Set<bigint>][] = [];

  /** @param networks accepted by `readNetwork`; rules and configuration have refused all others */
  constructor(networks: readonly string[]) {
    const ipv4 = new Map<number, Set<number>>();
    const ipv6 = new Map<number, Set<bigint>>();
    for (const text of networks) {
      const network = readNetwork(text);
      if (network === null) continue;
      const { start, length } = network;
      if (start.family === 4) setOf(ipv4, length).add(Math.floor(start.value / 2 ** (32 - length)));
      else setOf(ipv6, length).add(start.value >> BigInt(128 - length));
    }
    for (const [length, starts] of ipv4) this.#ipv4.push([2 ** (32 - length), starts]);
    for (const [length, starts] of ipv6) this.#ipv6.push([BigInt(128 - length), starts]);
  }

  get isEmpty(): boolean {
    return this.#ipv4.length + this.#ipv6.length === 0;
  }

  has({ family, value }: Address): boolean {
    // Divides, because shifting by 32 bits would do nothing.
    if (family === 4) return this.#ipv4.some(([divisor, starts]) => starts.has(Math.floor(value / divisor)));
    return this.#ipv6.some(([shift, starts]) => starts.has(value >> shift));
  }
}

function setOf<T>(byLength: Map<number, Set<T>>, length: number): Set<T> {
  const known = byLength.get(length);
  if (known) return known;
  const starts = new Set<T>();
  byLength.set(length, starts);
  return starts;
}

/**
 * Special-purpose networks (RFC 6890 and its registries), with 6to4 (2002::/16), which holds an IPv4 address. Of IPv6,
 * only 2000::/3 is public: not loopback, link-local, unique local, multicast, NAT64 and IPv4-compatible addresses.
 */
const SPECIAL = new NetworkSet(
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20`.split(
    /\s+/,
  ),
);
const GLOBAL_IPV6 = new NetworkSet(['2000::/3']);

/** Returns whether the address is on the public internet, and so in no special-purpose network. */
export const isPublicAddress = (address: Address): boolean =>
  !SPECIAL.has(address) && (address.family === 4 || GLOBAL_IPV6.has(address));

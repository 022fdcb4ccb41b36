import ipaddr from 'ipaddr.js';

const GROUPS_OF_NETWORK = 4;

/**
 * What an address counts as: itself, or, for IPv6, its /64 network, since whoever has one address there has all of them.
 * @param address as the server knows it, IPv4 or IPv6; an IPv4 address in IPv6 clothes counts as IPv4
 */
export function addressKey(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  const network = parsed.parts.slice(0, GROUPS_OF_NETWORK).map((group) => group.toString(16));
  return `${network.join(':')}::/64`;
}

import { readAddress } from '../../core/ip-address.js';

/**
 * Returns the key under which an address is counted: the address itself, or its /64 network for IPv6, since a client
 * usually has a whole /64.
 * @param address IPv4 or IPv6; IPv4-mapped IPv6 addresses are normalised to IPv4
 */
export function addressKey(address: string): string {
  const read = address.includes(':') ? readAddress(address) : null;
  if (read === null) return address;
  if (read.family === 4) return [24, 16, 8, 0].map((shift) => (read.value >>> shift) & 0xff).join('.');
  const network = [112n, 96n, 80n, 64n].map((shift) => ((read.value >> shift) & 0xffffn).toString(16));
  return `${network.join(':')}::/64`;
}

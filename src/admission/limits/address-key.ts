import { readAddress } from '../../core/ip-address.js';

/** IPv6 counts by /64, which one client usually has whole. @param address IPv4-mapped IPv6 is normalised to IPv4 */
export function addressKey(address: string): string {
  const read = address.includes(':') ? readAddress(address) : null;
  if (read === null) return address;
  if (read.family === 4) return [24, 16, 8, 0].map((shift) => (read.value >>> shift) & 0xff).join('.');
  const network = [112n, 96n, 80n, 64n].map((shift) => ((read.value >> shift) & 0xffffn).toString(16));
  return `${network.join(':')}::/64`;
}

import { isIPv4, isIPv6 } from 'node:net';

/** An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) becomes the IPv4 address. */
export type Address = { readonly family: 4; readonly value: number } | { readonly family: 6; readonly value: bigint };

/** All addresses that share their first `length` bits with `start`. */
export interface Network {
  readonly start: Address;
  /** Number of bits, 0 to 32 or 0 to 128. */
  readonly length: number;
}

/** Number of bits of an address, by family. */
const ADDRESS_BITS = { 4: 32, 6: 128 } as const;

const GROUPS = 8;
/** `::ffff:0:0/96`: IPv4-mapped IPv6 addresses. */
const MAPPED = 0xffffn;
const MAPPED_LENGTH = 96;

/** Reads an address as people and sockets write it, without a port. Null for anything else. */
export function readAddress(text: string): Address | null {
  if (!text.includes(':')) {
    const value = readIpv4(text);
    return value === null ? null : { family: 4, value };
  }
  const zone = text.indexOf('%'); // a link-local peer names its interface, which is not part of the address
  const value = readIpv6(zone === -1 ? text : text.slice(0, zone));
  if (value === null) return null;
  return value >> 32n === MAPPED ? { family: 4, value: Number(value & 0xffffffffn) } : { family: 6, value };
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or a single address. Null otherwise, also with bits set after the prefix. */
export function readNetwork(text: string): Network | null {
  const slash = text.indexOf('/');
  const written = slash === -1 ? text : text.slice(0, slash);
  if (written.includes('%')) return null;
  const start = readAddress(written);
  if (start === null) return null;
  // Even an IPv4-mapped address, if written with colons, has a prefix of 128 bits.
  const prefixBits = start.family === 4 && written.includes(':') ? MAPPED_LENGTH : 0;
  const length = slash === -1 ? ADDRESS_BITS[start.family] : readLength(text.slice(slash + 1)) - prefixBits;
  if (!(length >= 0 && length <= ADDRESS_BITS[start.family])) return null;
  return hasBitsBehind(start, length) ? null : { start, length };
}

function readIpv4(text: string): number | null {
  return isIPv4(text) ? text.split('.').reduce((value, byte) => value * 256 + Number(byte), 0) : null;
}

function readIpv6(text: string): bigint | null {
  if (!isIPv6(text)) return null;
  const [left = '', right] = text.split('::');
  const head = groupsOf(left);
  const tail = right === undefined ? [] : groupsOf(right);
  const zeros = Array<string>(GROUPS - head.length - tail.length).fill('0000');
  return BigInt(`0x${[...head, ...zeros, ...tail].join('')}`);
}

/** Returns the groups of one side of `::`, four digits each. The last group of an address may be written as IPv4. */
function groupsOf(text: string): string[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    const ipv4 = group.includes('.') ? (readIpv4(group) as number) : null;
    const groups = ipv4 === null ? [group] : [(ipv4 >>> 16).toString(16), (ipv4 & 0xffff).toString(16)];
    return groups.map((digits) => digits.padStart(4, '0'));
  });
}

/** Returns NaN for anything but a number. */
const readLength = (text: string): number => (/^(0|[1-9]\d{0,2})$/.test(text) ? Number(text) : NaN);

const hasBitsBehind = ({ family, value }: Address, length: number): boolean =>
  family === 4 ? value % 2 ** (32 - length) !== 0 : BigInt.asUintN(128 - length, value) !== 0n;

/** Returns whether the host of a URL is this machine. Plain text sent there does not leave the machine. */
export const isLoopback = (hostname: string): boolean => ['localhost', '127.0.0.1', '[::1]'].includes(hostname);

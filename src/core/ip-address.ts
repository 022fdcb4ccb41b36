/** An IP address as a number of its family. An IPv4-mapped IPv6 address (`::ffff:1.2.3.4`) is the IPv4 address. */
export type Address = { readonly family: 4; readonly value: number } | { readonly family: 6; readonly value: bigint };

/** All addresses that share their first `length` bits with `start`. */
export interface Network {
  readonly start: Address;
  /** Bits, 0 to 32 or 0 to 128. */
  readonly length: number;
}

/** Bits of an address by family. */
const ADDRESS_BITS = { 4: 32, 6: 128 } as const;

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const GROUPS = 8;
/** `::ffff:0:0/96`: IPv4-mapped IPv6 addresses. */
const MAPPED = 0xffffn;
const MAPPED_LENGTH = 96;

/** Reads an address as people and sockets write it, without a port; null for anything else. */
export function readAddress(text: string): Address | null {
  if (!text.includes(':')) {
    const value = readIpv4(text);
    return value === null ? null : { family: 4, value };
  }
  const zone = text.indexOf('%'); // a link-local peer names its interface, which is no part of the address
  const value = readIpv6(zone === -1 ? text : text.slice(0, zone));
  if (value === null) return null;
  return value >> 32n === MAPPED ? { family: 4, value: Number(value & 0xffffffffn) } : { family: 6, value };
}

/** Reads `10.0.0.0/8`, `2001:db8::/32` or a single address. Null for anything else, and where bits are set behind the length. */
export function readNetwork(text: string): Network | null {
  const slash = text.indexOf('/');
  const written = slash === -1 ? text : text.slice(0, slash);
  if (written.includes('%')) return null;
  const start = readAddress(written);
  if (start === null) return null;
  // What was written with colons counts 128 bits, also when it is an IPv4 address in the end.
  const prefixBits = start.family === 4 && written.includes(':') ? MAPPED_LENGTH : 0;
  const length = slash === -1 ? ADDRESS_BITS[start.family] : readLength(text.slice(slash + 1)) - prefixBits;
  if (!(length >= 0 && length <= ADDRESS_BITS[start.family])) return null;
  return hasBitsBehind(start, length) ? null : { start, length };
}

function readIpv4(text: string): number | null {
  const parts = IPV4.exec(text);
  if (parts === null) return null;
  let value = 0;
  for (let i = 1; i <= 4; i++) {
    const part = parts[i] as string;
    const byte = Number(part);
    if (byte > 255 || (part.length > 1 && part.startsWith('0'))) return null; // some read 010 as eight
    value = value * 256 + byte;
  }
  return value;
}

function readIpv6(text: string): bigint | null {
  const [left = '', right, ...more] = text.split('::');
  if (more.length > 0) return null;
  const head = readGroups(left, right === undefined);
  const tail = right === undefined ? [] : readGroups(right, true);
  if (head === null || tail === null) return null;
  const missing = GROUPS - head.length - tail.length;
  if (right === undefined ? missing !== 0 : missing < 1) return null;
  return BigInt(`0x${[...head, ...Array<string>(missing).fill('0000'), ...tail].join('')}`);
}

/** The groups of one side of `::`, four digits each; only the last one of an address may be written as IPv4. */
function readGroups(text: string, isEnd: boolean): string[] | null {
  if (text === '') return [];
  const groups = text.split(':');
  const last = groups.at(-1) as string;
  if (isEnd && last.includes('.')) {
    const value = readIpv4(last);
    if (value === null) return null;
    groups.splice(-1, 1, (value >>> 16).toString(16), (value & 0xffff).toString(16));
  }
  return groups.every((group) => GROUP.test(group)) ? groups.map((group) => group.padStart(4, '0')) : null;
}

/** NaN when it is no number. */
const readLength = (text: string): number => (/^(0|[1-9]\d{0,2})$/.test(text) ? Number(text) : NaN);

const hasBitsBehind = ({ family, value }: Address, length: number): boolean =>
  family === 4 ? value % 2 ** (32 - length) !== 0 : BigInt.asUintN(128 - length, value) !== 0n;

import { BlockList, isIP, isIPv6 } from 'node:net';
import { CLOCK_SKEW_MAX_MS } from '../clock-skew.js';
import { ok, risky, wrong, type Judged } from './check.js';

/** Where a server is, as this machine sees it. */
export interface Reach {
  readonly at: 'this_machine' | 'private' | 'public';
  /**
   * How outsiders could reach the server: it has a public address, or listens on all addresses of this machine, which
   * has more than loopback. Null if no way is visible from here.
   */
  readonly open: 'public_address' | 'every_address' | null;
}

/** The free fraction of a disk, 0 to 1. Null if it is not visible from here. */
export type FreeShare = number | null;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/** RFC 1918, 3927, 4193 and 4291, and the range that carriers and overlay networks share (RFC 6598). */
const PRIVATE = new BlockList();
for (const [network, length] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['169.254.0.0', 16],
  ['100.64.0.0', 10],
] as const)
  PRIVATE.addSubnet(network, length);
PRIVATE.addSubnet('fc00::', 7, 'ipv6');
PRIVATE.addSubnet('fe80::', 10, 'ipv6');

/** `every` is the wildcard address, which stands for all addresses of a machine. `name` is not an address. */
export type AddressKind = 'loopback' | 'private' | 'public' | 'every' | 'name';

export function kindOfAddress(text: string): AddressKind {
  const bare = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)?.[1] ?? text;
  if (isIP(bare) === 0) return bare === 'localhost' ? 'loopback' : 'name';
  if (bare === '0.0.0.0' || bare === '::') return 'every';
  const family = isIPv6(bare) ? 'ipv6' : 'ipv4';
  if (LOOPBACK.check(bare, family)) return 'loopback';
  return PRIVATE.check(bare, family) ? 'private' : 'public';
}

/**
 * @param cipher null: not encrypted
 * @param how the setting to change, as a sentence
 */
export function judgeTls(cipher: string | null, { at }: Reach, how: string): Judged {
  if (cipher !== null) return ok(cipher);
  switch (at) {
    case 'this_machine':
      return ok('unencrypted, but only inside this machine');
    case 'private':
      return risky('The connection is not encrypted: anyone who can read the network can read orders and logins.', how);
    case 'public':
      return wrong('The connection is not encrypted and goes to a public address.', how);
  }
}

export const TLS_WRONG_IF = 'it is unencrypted to a public address';
export const TLS_RISKY_IF = 'it is unencrypted to another machine';

/**
 * @param what a port of a server
 * @param guarded whether it refuses clients without a login
 */
export function judgeOpen(what: string, { at, open }: Reach, guarded: boolean): Judged {
  if (open === null) return ok(at === 'this_machine' ? 'listens only on this machine' : 'reached at a private address');
  const where =
    open === 'public_address' ? 'is reached at a public address' : 'listens on every address of this machine';
  const todo = 'Allow access from the programs only, with a firewall or a network of its own.';
  return guarded ? risky(`${what} ${where}.`, todo) : wrong(`${what} ${where} and requires no login.`, todo);
}

export const OPEN_WRONG_IF = 'without a login, a port is open on a public address or on every address of this machine';
export const OPEN_RISKY_IF = 'the same, with a login';

/** A busy day may fill a disk with less free; below the second value, a few hours may. */
const FREE_RISKY = 0.15;
const FREE_WRONG = 0.05;

/** @param whose the data of a server */
export function judgeDisk(whose: string, free: FreeShare): Judged | null {
  if (free === null) return null;
  const says = `The disk with ${whose} is ${percentUsed(free)} full.`;
  const todo = 'Free some space, or use a larger disk.';
  if (free < FREE_WRONG) return wrong(says, todo);
  return free < FREE_RISKY ? risky(says, todo) : ok(`${percentUsed(free)} full`);
}

const percentUsed = (free: number): string => `${Math.ceil((1 - free) * 100)} %`;

export const DISK_WRONG_IF = `less than ${FREE_WRONG * 100} % is free`;
export const DISK_RISKY_IF = `less than ${FREE_RISKY * 100} % is free`;

/** @param skewMs our clock minus the server's */
export function judgeClock(skewMs: number): Judged {
  if (Math.abs(skewMs) <= CLOCK_SKEW_MAX_MS) return ok(`${skewMs} ms apart`);
  const says = `Its clock and the clock of this machine differ by ${Math.abs(skewMs)} ms.`;
  return wrong(says, 'Set the clocks of both machines (NTP).');
}

export const CLOCK_WRONG_IF = `they differ by more than ${CLOCK_SKEW_MAX_MS / 1000} s`;

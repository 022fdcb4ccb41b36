import type { LookupAddress } from 'node:dns';
import { CANCELLED, lookup, Resolver, TIMEOUT } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { NetworkSet } from '../../admission/lists/network-set.js';
import { readAddress } from '../../core/ip-address.js';

// Where a webhook may go. Whoever names an endpoint must not reach the servers behind our firewall.

/**
 * Special-purpose networks (RFC 6890 and its registries). An IPv4-mapped IPv6 address is read as its IPv4 address, and
 * 6to4 (2002::/16) holds one. Of IPv6, only 2000::/3 is public: that leaves out loopback, link-local, unique local,
 * multicast, NAT64 and IPv4-compatible addresses.
 */
const SPECIAL = new NetworkSet(
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
  192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20`.split(
    /\s+/,
  ),
);
const GLOBAL_IPV6 = new NetworkSet(['2000::/3']);

/** Says why an address must not be called, as a predicate. Null: it may be called. */
export function flawOfAddress(text: string, isEncrypted: boolean, allowed: NetworkSet): string | null {
  const address = readAddress(text);
  if (address !== null && allowed.has(address)) return null;
  if (!isEncrypted) return 'may only be called with https';
  const isPublic = address !== null && !SPECIAL.has(address) && (address.family === 4 || GLOBAL_IPV6.has(address));
  return isPublic ? null : 'is not a public address';
}

const URL_LENGTH_MAX = 500;

/** Says why a text cannot be the address of an endpoint, as a predicate. Null: it can, as far as its text tells. */
export function flawOfUrl(text: string, allowed: NetworkSet): string | null {
  if (text.length > URL_LENGTH_MAX) return `must have at most ${URL_LENGTH_MAX} characters`;
  if (!URL.canParse(text)) return 'must be a URL such as https://shop.example/events';
  const { protocol, username, password, hash, hostname } = new URL(text);
  if (protocol !== 'https:' && !(protocol === 'http:' && !allowed.isEmpty)) return 'must begin with https://';
  if (username !== '' || password !== '') return 'must not contain a user or password';
  if (hash !== '') return 'must not contain #';
  const host = hostname.replace(/^\[|\]$/g, '');
  const flaw = isIP(host) === 0 ? null : flawOfAddress(host, protocol === 'https:', allowed);
  return flaw === null ? null : `must not point to ${host}, which ${flaw}`;
}

/** For one try at one name server. */
const TRY_MS = 1_500;

/** The host has an address that must not be called. The message has no text of the receiver. */
export class WrongAddress extends Error {}

/** Opens a look-up that finds only addresses which may be called. @param nameServers absent: those of the system */
export function createCheckedLookup(allowed: NetworkSet, maxMs: number, nameServers?: readonly string[]) {
  /** Look-ups under way, by host: one per endpoint, however many of its calls want a connection. */
  const open = new Map<string, Promise<LookupAddress[]>>();
  let lastOfSystem: Promise<unknown> = Promise.resolve();

  /**
   * Asks DNS without a thread of the process, because a silent name server would hold it, and the process has four. Names
   * that DNS does not know may be in the hosts file or need a search domain. The system looks them up, one at a time.
   */
  const find = async (host: string): Promise<LookupAddress[]> => {
    const resolver = new Resolver({ timeout: TRY_MS, tries: 2 });
    if (nameServers !== undefined) resolver.setServers(nameServers);
    AbortSignal.timeout(maxMs).addEventListener('abort', () => resolver.cancel());
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
    for (const answer of answers) {
      if (answer.status === 'rejected' && [TIMEOUT, CANCELLED].includes(answer.reason.code)) throw answer.reason;
    }
    const ofSystem = lastOfSystem.then(() => lookup(host, { all: true }));
    lastOfSystem = ofSystem.catch(() => undefined);
    return ofSystem;
  };

  const checked = async (host: string, isEncrypted: boolean): Promise<LookupAddress[]> => {
    const finding = open.get(host) ?? find(host).finally(() => open.delete(host));
    open.set(host, finding);
    const found = await finding;
    for (const { address } of found) {
      const flaw = flawOfAddress(address, isEncrypted, allowed);
      if (flaw !== null) throw new WrongAddress(`the host has the address ${address}, which ${flaw}`);
    }
    return found;
  };

  return (isEncrypted: boolean): LookupFunction =>
    (host, { all }, answer) =>
      void checked(host, isEncrypted).then(
        (found) => (all === true ? answer(null, found) : answer(null, found[0]?.address ?? '', found[0]?.family)),
        (error) => answer(error, ''),
      );
}

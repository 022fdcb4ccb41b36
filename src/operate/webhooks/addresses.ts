import { isIP } from 'node:net';
import { isPublicAddress, type NetworkSet } from '../../admission/lists/network-set.js';
import { readAddress } from '../../core/ip-address.js';

// Webhooks must not reach the servers behind our firewall.

/** Says why an address must not be called, as a predicate. Null: it may be called. */
export function flawOfAddress(text: string, isEncrypted: boolean, allowed: NetworkSet): string | null {
  const address = readAddress(text);
  if (address !== null && allowed.has(address)) return null;
  if (!isEncrypted) return 'may only be called with https';
  return address !== null && isPublicAddress(address) ? null : 'is not a public address';
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

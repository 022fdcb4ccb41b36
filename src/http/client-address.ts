import type { IncomingMessage } from 'node:http';
import { readAddress } from '../core/ip-address.js';
import type { NetworkSet } from '../admission/lists/network-set.js';

/** The IP address of the client as text; empty when its connection is gone. */
export type ClientAddress = (req: IncomingMessage) => string;

/** A socket for both families shows IPv4 addresses with this prefix. */
const IPV4_MAPPED = '::ffff:';
/** Some proxies add the port of their client. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/;

/**
 * The peer of the connection; if that is one of our proxies, the client that it names. Each proxy appends its client at
 * the right end of X-Forwarded-For, so only the entries that our own proxies appended are trusted: the client may have
 * invented anything further left.
 */
export function createClientAddress(trusted: NetworkSet): ClientAddress {
  if (trusted.isEmpty) return peerOf;
  const isTrusted = (text: string): boolean => {
    const address = readAddress(text);
    return address !== null && trusted.has(address);
  };
  return (req) => {
    const peer = peerOf(req);
    const forwarded = req.headers['x-forwarded-for'];
    // Node joins repeated headers in the order in which they came.
    return typeof forwarded === 'string' ? firstUntrusted(peer, forwarded, isTrusted) : peer;
  };
}

/**
 * The peer, or the first address from the right that is not one of our proxies. Text that is no address ends the
 * search.
 */
function firstUntrusted(peer: string, forwarded: string, isTrusted: (text: string) => boolean): string {
  let found = peer;
  let end = forwarded.length;
  while (end > 0 && isTrusted(found)) {
    const comma = forwarded.lastIndexOf(',', end - 1);
    const named = plain(forwarded.slice(comma + 1, end).trim());
    if (readAddress(named) === null) return found;
    found = named;
    end = comma;
  }
  return found;
}

const peerOf = (req: IncomingMessage): string => withoutPrefix(req.socket.remoteAddress ?? '');

function plain(text: string): string {
  const bare = WITH_PORT.exec(text);
  return withoutPrefix(bare?.[1] ?? bare?.[2] ?? text);
}

const withoutPrefix = (address: string): string =>
  address.startsWith(IPV4_MAPPED) && address.includes('.') ? address.slice(IPV4_MAPPED.length) : address;

import type { IncomingMessage } from 'node:http';
import { readAddress } from '../core/ip-address.js';
import type { NetworkSet } from '../admission/lists/network-set.js';

/** Returns the IP address of the client as text. Empty if its connection is closed. */
export type ClientAddress = (req: IncomingMessage) => string;

/** The prefix that a dual-stack socket adds to IPv4 addresses. */
const IPV4_MAPPED = '::ffff:';
/** Some proxies add the port of their client. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/;

/**
 * Returns the peer of the connection, or the client that the peer names if the peer is a trusted proxy. Each proxy
 * appends its client at the right end of X-Forwarded-For, so only the entries of our own proxies are trusted. Any entry
 * further to the left may be an invention of the client.
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
    // Node joins repeated headers in the order of their arrival.
    return typeof forwarded === 'string' ? firstUntrusted(peer, forwarded, isTrusted) : peer;
  };
}

/** Returns the first address from the right that is no trusted proxy, or the peer. Stops at other text. */
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

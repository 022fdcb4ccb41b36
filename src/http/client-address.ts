import type { IncomingMessage } from 'node:http';
import { readAddress } from '../core/ip-address.js';
import type { NetworkSet } from '../admission/lists/network-set.js';

/** The IP address of the client as text; empty when its connection is gone. */
export type ClientAddress = (req: IncomingMessage) => string;

/** IPv4 as a socket for both families shows it. */
const CLOTHES = '::ffff:';
/** Some proxies add the port of their client. */
const WITH_PORT = /^(?:\[([^\]]+)\]|(\d+\.\d+\.\d+\.\d+))(?::\d{1,5})?$/;

/**
 * Whoever is on the other end of the connection, unless that is one of our proxies: then whom it names. Each proxy adds
 * its client at the right end of X-Forwarded-For, so only what our own proxies have added is believed; anything further
 * left the client may have made up.
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
    // Node joins a header that comes twice, in the order in which it came.
    return typeof forwarded === 'string' ? firstStranger(peer, forwarded, isTrusted) : peer;
  };
}

/** From the peer on, the first address from the right that is no proxy of ours; what is no address ends the search. */
function firstStranger(peer: string, forwarded: string, isTrusted: (text: string) => boolean): string {
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

const peerOf = (req: IncomingMessage): string => plain(req.socket.remoteAddress ?? '');

function plain(text: string): string {
  const bare = WITH_PORT.exec(text);
  const address = bare?.[1] ?? bare?.[2] ?? text;
  return address.startsWith(CLOTHES) && address.includes('.') ? address.slice(CLOTHES.length) : address;
}

import type { TcpProxy } from './tcp-proxy.js';

/** What a program sends to the broker through a proxy. Bodies and ids travel as text; headers, which do not, are not read. */

const BATCH_ID = /"batchId":"([\w-]{22})"/g;
/** Version 1, MAC, pid, seconds, sequence number: 17 bytes in hex. */
const MESSAGE_ID = /01[0-9A-F]{32}/g;

/** Ids of batches in message bodies; more as they pass. */
export const batchIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, BATCH_ID);

/** Ids that the client gave to its messages; more as they pass. */
export const messageIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, MESSAGE_ID);

/** What of a message id the time and the process decide: all but version and MAC. */
export const withoutMac = (messageId: string): string => messageId.slice(14);

function collect(proxy: TcpProxy, pattern: RegExp): ReadonlySet<string> {
  const found = new Set<string>();
  proxy.meddle = (what, chunk) => {
    if (what === 'requests') {
      for (const [whole, part] of chunk.toString('latin1').matchAll(pattern)) found.add(part ?? whole);
    }
    return true;
  };
  return found;
}

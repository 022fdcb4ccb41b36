import { connect } from 'node:tls';
import { tlsReason, type Tls } from '../core/tls.js';
import type { RedisAddress, RedisHost } from './address.js';
import { REDIS_TLS_NAMES } from './client.js';

const ANSWER_MS = 2_000;

/**
 * A server that requires TLS or a certificate closes a connection without an error. Connects again over TLS, whatever
 * the address says.
 * @returns the rest of a sentence that begins with the server; null if this is not the reason. Never rejects
 */
export function silentRefusal(address: RedisAddress, tls: Tls | null): Promise<string | null> {
  const { host, port } = hostOf(address);
  const options = tls === null ? { rejectUnauthorized: false } : tls.optionsFor(host);
  let isEncrypted = false;
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...options });
    const end = (reason: string | null): void => {
      socket.destroy();
      resolve(reason);
    };
    socket.setTimeout(ANSWER_MS, () => end(null));
    socket.once('secureConnect', () => {
      isEncrypted = true;
      if (tls === null) end('uses TLS: begin REDIS_URL with rediss');
      else socket.write('PING\r\n');
    });
    socket.once('data', () => end(null));
    socket.once('error', (error) => end(tls === null ? null : tlsReason(error, REDIS_TLS_NAMES, tls)));
    socket.once('close', () => {
      const { prefix } = REDIS_TLS_NAMES;
      const wantsCertificate = isEncrypted && tls?.hasCert === false;
      end(wantsCertificate ? `asks for a client certificate: set ${prefix}_CERT and ${prefix}_KEY` : null);
    });
  });
}

function hostOf(address: RedisAddress): RedisHost {
  switch (address.kind) {
    case 'server': {
      const { hostname, port } = new URL(address.url);
      return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 6379) };
    }
    case 'sentinel':
      return address.sentinels[0] as RedisHost;
    case 'cluster':
      return address.nodes[0] as RedisHost;
  }
}

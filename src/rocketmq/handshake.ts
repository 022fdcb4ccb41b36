import { connect } from 'node:tls';
import { tlsReason, type Tls } from '../core/tls.js';
import { parseEndpoint } from './client-options.js';
import { ROCKETMQ_TLS_NAMES } from './credentials.js';

/** A nearby server takes milliseconds. */
const HANDSHAKE_TIMEOUT_MS = 3_000;

/**
 * Finds out why a client cannot talk to this endpoint with or without TLS. The client would try for a quarter of a
 * minute, then report that it has no route.
 * @returns the end of a sentence about the server; null if the handshake works or the endpoint is silent. Never rejects
 */
export async function handshakeFlaw(endpoint: string, tls: Tls | null): Promise<string | null> {
  const { host, port } = parseEndpoint(endpoint);
  const options = tls === null ? { rejectUnauthorized: false } : tls.optionsFor(host);
  const error = await new Promise<Error | null>((resolve) => {
    const socket = connect({ host, port, ALPNProtocols: ['h2'], ...options });
    const end = (result: Error | null): void => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(HANDSHAKE_TIMEOUT_MS, () => end(new Error('no answer in time')));
    socket.once('secureConnect', () => end(null));
    socket.once('error', end);
    socket.once('close', () => end(new Error('closed')));
  });
  if (tls !== null) return error === null ? null : tlsReason(error, ROCKETMQ_TLS_NAMES, tls);
  return error === null ? 'uses TLS, perhaps only TLS: set ROCKETMQ_TLS to grpc or on' : null;
}

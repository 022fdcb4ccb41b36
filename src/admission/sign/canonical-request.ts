import { hash } from 'node:crypto';

/** What a signature stands for. */
export interface CanonicalRequest {
  readonly method: string;
  /** The target as it stands in the request line, query included. */
  readonly path: string;
  /** As it was sent. */
  readonly body: string;
  /** Unix time in seconds, as the header has it. */
  readonly timestamp: string;
  readonly nonce: string;
}

/** Longer addresses are not signed; none of this API comes near. */
export const PATH_LENGTH_MAX = 1024;
/** Scheme, method, hash, time stamp and nonce, with room. */
export const CANONICAL_BYTES_MAX = PATH_LENGTH_MAX + 256;

/**
 * The text under a signature: six lines that end with a newline each but for the last. No part can hold a newline, so
 * two requests never have the same text.
 */
export function canonicalText({ method, path, body, timestamp, nonce }: CanonicalRequest): string {
  return `SECKILL-HMAC-SHA256\n${method}\n${path}\n${hash('sha256', body, 'hex')}\n${timestamp}\n${nonce}`;
}

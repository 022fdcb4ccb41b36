import type { IncomingMessage } from 'node:http';

/** No request of this API needs more; a purchase needs 14 bytes. */
export const BODY_BYTES_MAX = 4096;

/** Whether a body is announced that is too large, or whose length nobody says (chunked). */
export function hasLongBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : Number(length) > BODY_BYTES_MAX;
}

/**
 * Collects a body and calls back once: with its text, or with null as soon as it is too large. When the client goes
 * away before the end nothing is called and nothing is kept.
 */
export function collectBody(req: IncomingMessage, done: (body: string | null) => void): void {
  if (Number(req.headers['content-length']) > BODY_BYTES_MAX) return done(null);
  let body: Buffer | null = null;
  let tooLong = false;
  req.on('data', (chunk: Buffer) => {
    if (tooLong) return;
    body = body === null ? chunk : Buffer.concat([body, chunk]);
    tooLong = body.length > BODY_BYTES_MAX;
    if (tooLong) done(null);
  });
  req.on('end', () => {
    if (!tooLong) done(body === null ? '' : body.toString());
  });
}

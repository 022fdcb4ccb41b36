import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/** No request of this API needs more; a purchase needs 14 bytes. */
export const BODY_BYTES_MAX = 4096;

/** Whether the headers allow a JSON body. No Content-Type is fine; a compressed body is not. */
export function promisesJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  if (type !== undefined && type !== 'application/json' && !/^application\/json *(;|$)/i.test(type)) return false;
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity';
}

/** Whether the headers announce a body that is too large or of unknown length (chunked). */
export function hasLongBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : Number(length) > BODY_BYTES_MAX;
}

/** What a parser of the app around us has left of a body that it has read. */
function parsedBefore({ body }: IncomingMessage & { readonly body?: unknown }): string {
  if (body === undefined) return '';
  if (typeof body === 'string') return body;
  return Buffer.isBuffer(body) ? body.toString() : JSON.stringify(body);
}

/**
 * Collects a body and calls `done` once: with its text, or with null as soon as it is too large. If the client
 * disconnects before the end, `done` is not called.
 */
export function collectBody(
  req: IncomingMessage,
  done: (body: string | null) => void,
  bytesMax: number = BODY_BYTES_MAX,
): void {
  if (Number(req.headers['content-length']) > bytesMax) return done(null);
  if (req.readableEnded) return done(parsedBefore(req));
  const chunks: Buffer[] = [];
  let bytes = 0;
  req.on('data', (chunk: Buffer) => {
    if (bytes > bytesMax) return;
    bytes += chunk.length;
    if (bytes <= bytesMax) return void chunks.push(chunk);
    chunks.length = 0;
    done(null);
  });
  req.on('end', () => {
    if (bytes <= bytesMax) done(textOf(chunks));
  });
}

/** Nearly every body comes in one piece. */
function textOf(chunks: readonly Buffer[]): string {
  const [first, ...rest] = chunks;
  if (first === undefined) return '';
  return (rest.length === 0 ? first : Buffer.concat(chunks)).toString();
}

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { utf8Of } from '../core/text.js';

/** No request to this API needs more. A purchase needs 14 bytes. */
export const BODY_BYTES_MAX = 4096;

const JSON_TYPE = /^application\/json *(;|$)/i;
const OTHER_CHARSET = /;\s*charset\s*=\s*(?!"?utf-?8"?\s*(;|$))/i;

/**
 * Returns whether the headers allow a JSON body. Accepts a request without Content-Type. Refuses a compressed body and
 * any charset except UTF-8.
 */
export function promisesJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  if (type !== undefined && type !== 'application/json' && (!JSON_TYPE.test(type) || OTHER_CHARSET.test(type))) {
    return false;
  }
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity';
}

/** Returns whether the headers announce a body that is too large or of unknown length (chunked). */
export function hasLongBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : Number(length) > BODY_BYTES_MAX;
}

/** Why there is no text of a body: it is too large or not UTF-8, or middleware of the host app did not keep it. */
export type BodyFault = 'too_large' | 'not_utf8' | 'swallowed';

interface MaybeParsed extends IncomingMessage {
  readonly body?: unknown;
  /** Set by the parsers of Express 4, which set `{}` even if they read nothing. */
  readonly _body?: unknown;
}

/** The length of the shortest object that has a field: `{"a":1}`. */
const FIELD_BYTES_MIN = 7;

/** Returns the body that a parser of the host app has read and kept. Undefined if no body was kept. */
function parsedBefore({ body, _body, headers }: MaybeParsed): string | Buffer | undefined {
  if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) return body;
  const text = JSON.stringify(body);
  const mayHaveField =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length']) >= FIELD_BYTES_MIN;
  return text === '{}' && _body !== true && mayHaveField ? undefined : text;
}

/**
 * Collects a body, then calls either `done` or `refuse`, once. Calls `refuse` as soon as the fault is known. Calls
 * neither if the client disconnects before the end.
 */
export function collectBody(
  req: IncomingMessage,
  done: (body: string) => void,
  refuse: (fault: BodyFault) => void,
  bytesMax: number = BODY_BYTES_MAX,
): void {
  const announced = Number(req.headers['content-length'] ?? 0);
  if (announced > bytesMax) return refuse('too_large');
  if (req.readableEnded || req.readableDidRead) {
    const body = parsedBefore(req);
    if (body !== undefined) return hand(body, done, refuse);
    return req.readableDidRead || announced > 0 ? refuse('swallowed') : done('');
  }
  const chunks: Buffer[] = [];
  let bytes = 0;
  req.on('data', (piece: Buffer | string) => {
    if (bytes > bytesMax) return;
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece; // a host app may have set an encoding
    bytes += chunk.length;
    if (bytes <= bytesMax) return void chunks.push(chunk);
    chunks.length = 0;
    refuse('too_large');
  });
  req.on('end', () => {
    if (bytes <= bytesMax) hand(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), done, refuse);
  });
}

function hand(body: string | Buffer, done: (body: string) => void, refuse: (fault: BodyFault) => void): void {
  const text = typeof body === 'string' ? body : utf8Of(body);
  if (text === null) refuse('not_utf8');
  else done(text);
}

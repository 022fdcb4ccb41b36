import type { IncomingHttpHeaders } from 'node:http';
import { isQuantity, QUANTITY_MAX } from '../core/purchase.js';

/** The address of the purchase endpoint, as documents and metrics write it. */
export const PURCHASE_PATH = '/v1/sales/{saleId}/purchases';

const PREFIX = '/v1/sales/';
const SUFFIX = '/purchases';

/** The raw sale id in the address of a purchase, however odd it looks; null for any other address. */
export function saleIdOf(target: string): string | null {
  // A proxy may send the whole address; every server must take that (RFC 9112, 3.2.2).
  const url = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?]*/i, '');
  if (!url.startsWith(PREFIX)) return null;
  const query = url.indexOf('?');
  const end = (query === -1 ? url.length : query) - SUFFIX.length;
  if (end < PREFIX.length || !url.startsWith(SUFFIX, end)) return null;
  const saleId = url.slice(PREFIX.length, end);
  return saleId.includes('/') ? null : saleId;
}

/** Whether the headers allow a JSON body. No Content-Type is fine; a compressed body is not. */
export function promisesJson(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'];
  if (type !== undefined && type !== 'application/json' && !/^application\/json *(;|$)/i.test(type)) return false;
  const encoding = headers['content-encoding'];
  return encoding === undefined || encoding === 'identity';
}

/** The trace id of a well-formed W3C `traceparent`, else an empty string: a bad trace never costs a purchase. */
export function traceOf(traceparent: string | string[] | undefined): string {
  if (typeof traceparent !== 'string') return '';
  const match = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent);
  return match?.[1] ?? '';
}

/** Reads a body: a quantity in units, or a sentence that says what is wrong. An empty body asks for one unit. */
export function readQuantity(text: string): number | string {
  if (text === '') return 1;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'The body is not JSON.';
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'The body must be a JSON object.';
  let quantity: unknown = 1;
  // Object.keys, because JSON.parse makes `__proto__` an own field: it is refused like every other stranger.
  for (const field of Object.keys(body)) {
    if (field !== 'quantity') return unknownField(field);
    quantity = (body as { quantity: unknown }).quantity;
  }
  return isQuantity(quantity) ? quantity : `quantity must be a whole number from 1 to ${QUANTITY_MAX}.`;
}

function unknownField(field: string): string {
  if (field === 'userId') return 'userId does not belong in the body: the buyer is who the token says.';
  return `Unknown field ${JSON.stringify(field.slice(0, 40))}; only quantity is read.`;
}

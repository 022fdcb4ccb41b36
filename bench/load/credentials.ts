import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { readKeyring } from '../../src/core/hmac.js';
import { Seals } from '../../src/admission/sign/seals.js';
import { signRequest } from '../../test/helpers/sign-request.js';
import { BenchError } from '../bench-error.js';
import { idempotencyKeyAt, readRecords, userIdOf, type BuyerSlice } from './buyers.js';
import { PURCHASE_BODY } from './load.js';

/** Keys of the instance, as in its configuration: `id:secret,id:secret`. */
export interface AdmissionKeys {
  readonly sign: string;
  readonly seal: string;
}

/** Purchase tokens and queue passes outlive every load. */
const SEAL_LIFE_MS = 3_600_000;
/** Number of records written at once. */
const CHUNK = 20_000;

/** Further headers of one buyer, exactly as the request contains them. They have the same length for all buyers. */
type HeadersOf = (userId: string, idempotencyKey: string) => string;

/**
 * Signs each request when it is sent, because a timestamp is valid for five minutes and a nonce for one use.
 * @param keys `id:secret,id:secret`; the first one signs
 */
function signatureHeaders(keys: string, path: string): HeadersOf {
  const [first] = readKeyring(keys);
  if (first === undefined) throw new RangeError('no signing key is set');
  const [keyId, key] = first;
  const run = randomBytes(8).toString('hex');
  const timestamp = String(Math.floor(Date.now() / 1000));
  let signed = 0;
  return (userId, idempotencyKey) => {
    const nonce = `${run}-${String(signed++).padStart(12, '0')}`;
    const purchase = { method: 'POST', path, body: PURCHASE_BODY, userId, idempotencyKey };
    const headers = signRequest(keyId, key, { version: 2, ...purchase, timestamp, nonce });
    return Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
  };
}

/** Returns a signature, a purchase token and a queue pass, which buyers need while every layer is on. */
export function credentialHeaders(keys: AdmissionKeys, saleId: string, path: string): HeadersOf {
  const signature = signatureHeaders(keys.sign, path);
  const seals = new Seals(readKeyring(keys.seal));
  const untilMs = Date.now() + SEAL_LIFE_MS;
  return (userId, idempotencyKey) => {
    const token = seals.seal({ kind: 'purchase-token', saleId, userId }, [untilMs]);
    const pass = seals.seal({ kind: 'queue-pass', saleId, userId }, [untilMs]);
    return `${signature(userId, idempotencyKey)}seckill-purchase-token: ${token}\r\nseckill-queue-pass: ${pass}\r\n`;
  };
}

/** Writes these buyers with additional headers into a separate file. */
export async function withHeaders(slice: BuyerSlice, path: string, headersOf: HeadersOf): Promise<BuyerSlice> {
  const [firstUser, firstKey] = [
    userIdOf(slice.first),
    idempotencyKeyAt(readRecords({ ...slice, count: 1 }), slice, 0),
  ];
  const extraBytes = headersOf(firstUser, firstKey).length;
  const file = openSync(path, 'w', 0o600);
  try {
    for (let from = 0; from < slice.count; from += CHUNK) {
      const part = { ...slice, first: slice.first + from, count: Math.min(CHUNK, slice.count - from) };
      const records = readRecords(part);
      let text = '';
      for (let place = 0; place < part.count; place++) {
        text += records.toString('latin1', place * slice.recordBytes, (place + 1) * slice.recordBytes);
        text += headersOf(userIdOf(part.first + place), idempotencyKeyAt(records, part, place));
      }
      if (text.length !== part.count * (slice.recordBytes + extraBytes)) {
        throw new BenchError('the headers of the prepared buyers differ in length');
      }
      writeSync(file, text, null, 'latin1');
      await new Promise((resolve) => setImmediate(resolve)); // so that Ctrl-C is noticed
    }
  } finally {
    closeSync(file);
  }
  return { path, recordBytes: slice.recordBytes + extraBytes, first: 0, count: slice.count };
}

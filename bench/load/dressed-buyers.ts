import { randomBytes } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { signRequest } from '../../src/admission/sign/request-signatures.js';
import { readKeyring, Seals } from '../../src/admission/sign/seals.js';
import { BenchError } from '../bench-error.js';
import { readRecords, userIdOf, type BuyerSlice } from './buyers.js';
import { PURCHASE_BODY } from './load.js';

/** Keys of the instance, as its configuration has them: `id:secret,id:secret`. */
export interface AdmissionKeys {
  readonly sign: string;
  readonly seal: string;
}

/** What buyers of a sale have to show beside their token. */
export interface Dress {
  readonly signed: boolean;
  readonly purchaseToken: boolean;
  readonly queuePass: boolean;
}

export const NOTHING_MORE: Dress = { signed: false, purchaseToken: false, queuePass: false };

/** Tokens and passes outlive every load. */
const SEAL_LIFE_MS = 3_600_000;
/** Records written at once. */
const CHUNK = 20_000;

/** Further headers of one buyer, as they stand in the request. Those of all buyers have one length. */
export type Dresser = (userId: string) => string;

/** @param path of the purchases of this sale @throws RangeError without a key that is needed */
export function dresserOf(
  dress: Dress,
  keys: AdmissionKeys,
  { saleId, path }: { saleId: string; path: string },
): Dresser {
  const untilMs = Date.now() + SEAL_LIFE_MS;
  const signed = dress.signed ? signer(keys.sign, path) : () => ({});
  const seals = dress.purchaseToken || dress.queuePass ? new Seals(readKeyring(keys.seal)) : null;
  const sealed = (kind: 'purchase-token' | 'queue-pass', userId: string): string | undefined =>
    seals?.seal({ kind, saleId, userId }, [untilMs]);
  return (userId) => {
    const headers = {
      ...signed(),
      ...(dress.purchaseToken ? { 'seckill-purchase-token': sealed('purchase-token', userId) } : {}),
      ...(dress.queuePass ? { 'seckill-queue-pass': sealed('queue-pass', userId) } : {}),
    };
    return Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
  };
}

/** Signs each request anew: a time stamp is good for five minutes and a nonce for one use. */
function signer(keys: string, path: string): () => Record<string, string> {
  const [first] = readKeyring(keys);
  if (first === undefined) throw new RangeError('there is no key to sign with');
  const [keyId, key] = first;
  const run = randomBytes(8).toString('hex');
  const timestamp = String(Math.floor(Date.now() / 1000));
  let signed = 0;
  return () => {
    const nonce = `${run}-${String(signed++).padStart(12, '0')}`;
    return signRequest(keyId, key, { method: 'POST', path, body: PURCHASE_BODY, timestamp, nonce });
  };
}

/** The same buyers with these headers, in a file of their own. */
export async function dressBuyers(slice: BuyerSlice, path: string, dresser: Dresser): Promise<BuyerSlice> {
  const extraBytes = dresser(userIdOf(slice.first)).length;
  const file = openSync(path, 'w', 0o600);
  try {
    for (let from = 0; from < slice.count; from += CHUNK) {
      const part = { ...slice, first: slice.first + from, count: Math.min(CHUNK, slice.count - from) };
      const records = readRecords(part);
      let text = '';
      for (let place = 0; place < part.count; place++) {
        text += records.toString('latin1', place * slice.recordBytes, (place + 1) * slice.recordBytes);
        text += dresser(userIdOf(part.first + place));
      }
      if (text.length !== part.count * (slice.recordBytes + extraBytes)) {
        throw new BenchError('the headers of the prepared buyers differ in length');
      }
      writeSync(file, text, null, 'latin1');
      await new Promise((resolve) => setImmediate(resolve)); // Ctrl-C is seen in between
    }
  } finally {
    closeSync(file);
  }
  return { path, recordBytes: slice.recordBytes + extraBytes, first: 0, count: slice.count };
}

import { createHash, randomUUID } from 'node:crypto';
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { createTokenSigner } from '../../src/http/token.js';
import { BenchError } from '../bench-error.js';

/**
 * Buyers prepared in a file. Each record has the two headers that differ between buyers, exactly as the request
 * contains them. All records have the same length, so a load generator finds the n-th record without an index.
 */
export interface BuyerFile {
  readonly path: string;
  readonly recordBytes: number;
  readonly count: number;
}

/** Buyers of one load, each used at most once. */
export interface BuyerSlice extends BuyerFile {
  /** Index of the first buyer. */
  readonly first: number;
}

interface BuyerFileFacts {
  readonly version: number;
  readonly secretHash: string;
  /** Unix ms. */
  readonly expiresAt: number;
  readonly recordBytes: number;
  readonly count: number;
}

/** Raise this to discard older files. Tokens of version 1 live longer than an api allows. */
const VERSION = 2;
/** Equals the default of JWT_LIFE_MAX_MS. */
const TOKEN_TTL_MS = 86_400_000;
/** A file that would expire during a long run is made again. */
const LEFT_MIN_MS = 2 * 3_600_000;
/** Number of records written at once: 6 MB, and the event loop can notice Ctrl-C in between. */
const CHUNK = 20_000;
const PROGRESS_EVERY = 5 * CHUNK;
const KEY_MARK = '\r\nIdempotency-Key: ';

/** All user ids have the same length. */
export const userIdOf = (index: number): string => `u${String(index).padStart(8, '0')}`;

const buyerRecord = (token: string, key: string): string => `Authorization: Bearer ${token}${KEY_MARK}${key}\r\n`;

/**
 * Makes sure that at least `count` buyers are prepared. Signs tokens here, before any measurement (10 µs each), with
 * the secret of the instance. Later runs reuse them while they are valid.
 */
export async function prepareBuyers(
  dir: string,
  {
    secret,
    count,
    signal,
    progress,
  }: { secret: string; count: number; signal: AbortSignal; progress: (line: string) => void },
): Promise<BuyerFile> {
  mkdirSync(dir, { recursive: true });
  const path = join(dir, 'buyers.bin');
  const factsPath = join(dir, 'buyers.json');
  const secretHash = createHash('sha256').update(secret).digest('hex');
  const known = readFacts(factsPath, secretHash);
  if (known !== null && known.count >= count) return { path, recordBytes: known.recordBytes, count: known.count };

  rmSync(factsPath, { force: true }); // written again once the file is complete
  const expiresAt = Date.now() + TOKEN_TTL_MS;
  const sign = createTokenSigner(secret);
  let recordBytes = 0;
  const file = openSync(path, 'w', 0o600);
  try {
    for (let from = 0; from < count; from += CHUNK) {
      signal.throwIfAborted();
      const to = Math.min(from + CHUNK, count);
      let text = '';
      for (let index = from; index < to; index++) {
        text += buyerRecord(sign({ userId: userIdOf(index), roles: [], ttlMs: TOKEN_TTL_MS }), randomUUID());
      }
      recordBytes = text.length / (to - from);
      if (!Number.isInteger(recordBytes)) throw new BenchError('the prepared requests differ in length');
      writeSync(file, text, null, 'latin1');
      if (to % PROGRESS_EVERY === 0 || to === count) {
        progress(`signing tokens: ${to.toLocaleString('en')} of ${count.toLocaleString('en')}`);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    fsyncSync(file); // writes to the disk before a measurement, not during it
  } finally {
    closeSync(file);
  }
  const facts: BuyerFileFacts = { version: VERSION, secretHash, expiresAt, recordBytes, count };
  writeFileSync(factsPath, `${JSON.stringify(facts)}\n`);
  return { path, recordBytes, count };
}

function readFacts(path: string, secretHash: string): BuyerFileFacts | null {
  try {
    const facts = JSON.parse(readFileSync(path, 'utf8')) as BuyerFileFacts;
    const usable = facts.version === VERSION && facts.secretHash === secretHash;
    return usable && facts.expiresAt - Date.now() > LEFT_MIN_MS ? facts : null;
  } catch {
    return null;
  }
}

/** Hands out new buyers to each load. Starts at the first buyer again, for another sale, when the file is used up. */
export class BuyerPool {
  readonly #file: BuyerFile;
  #next = 0;

  constructor(file: BuyerFile) {
    this.#file = file;
  }

  /**
   * Returns buyers for the loads on one sale.
   * @throws BenchError if the file holds fewer
   */
  take(count: number): BuyerSlice {
    if (count > this.#file.count) throw new BenchError(`${count} buyers are needed, ${this.#file.count} are prepared`);
    const first = this.#next + count <= this.#file.count ? this.#next : 0;
    this.#next = first + count;
    return { ...this.#file, first, count };
  }
}

/** Splits a slice into its first `count` buyers and the rest. */
export function splitSlice(slice: BuyerSlice, count: number): [BuyerSlice, BuyerSlice] {
  const others = { ...slice, first: slice.first + count, count: slice.count - count };
  return [{ ...slice, count }, others];
}

export function readRecords({ path, recordBytes, first, count }: BuyerSlice): Buffer {
  const records = Buffer.allocUnsafe(count * recordBytes);
  const file = openSync(path, 'r');
  try {
    const read = readSync(file, records, 0, records.length, first * recordBytes);
    if (read < records.length) throw new BenchError(`${path} is shorter than it says; delete it`);
    return records;
  } finally {
    closeSync(file);
  }
}

/** Returns the headers of a buyer by name. */
export function headersAt(records: Buffer, recordBytes: number, place: number): Record<string, string> {
  const lines = records
    .toString('latin1', place * recordBytes, (place + 1) * recordBytes)
    .trimEnd()
    .split('\r\n');
  return Object.fromEntries(lines.map((line) => line.split(': ') as [string, string]));
}

/** The Idempotency-Key of a buyer. `place` counts from the start of the slice. */
export function idempotencyKeyAt(records: Buffer, { recordBytes }: BuyerSlice, place: number): string {
  const text = records.toString('latin1', place * recordBytes, (place + 1) * recordBytes);
  return text.slice(text.indexOf(KEY_MARK) + KEY_MARK.length, -2);
}

/** `userId/requestId` of a buyer, as MySQL names the purchase. `place` counts from the start of the slice. */
export const purchaseKeyAt = (records: Buffer, slice: BuyerSlice, place: number): string =>
  `${userIdOf(slice.first + place)}/${idempotencyKeyAt(records, slice, place)}`;

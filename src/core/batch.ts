import { randomBytes } from 'node:crypto';
import { isId, isSaleId, isUserId } from './ids.js';
import { isMetadata, type Metadata } from './metadata.js';
import { isCount, openBody, undecodable as bad, type Undecodable } from './message-body.js';
import { isQuantity, type Purchase, purchaseKey } from './purchase.js';
import { homesEver } from './bucket.js';
import { isTraceId, readTraceparent, traceIdsOf } from './trace-context.js';

/** Version of the message body. A worker parks messages of an unknown version instead of guessing. */
const BATCH_VERSION = 1;
/** A purchase may carry metadata as a fourth value, which a program of version 1 would silently drop. */
const WITH_METADATA_VERSION = 2;

/** Maximum of `batch.sizeMax`. Lua unpacks one argument per purchase, which limits the size. */
export const BATCH_SIZE_CEILING = 1000;

/** A batch and the bucket in which its marker is. */
export interface BatchRef {
  /** An id of `newBatchId`, 22 characters. Names the marker and the message key. */
  readonly batchId: string;
  readonly saleId: string;
  readonly bucket: number;
  /** Epoch of the sale when the batch was formed. */
  readonly epoch: number;
}

/** Purchases of one sale and bucket that share one half message. */
export interface Batch extends BatchRef {
  /** Unix ms at the api. Only for people and metrics; no rule depends on it. */
  readonly createdAtMs: number;
  /** `traceparent` of the span that places the batch. Empty if no span was recorded. */
  readonly traceparent: string;
  /** 1 to BATCH_SIZE_CEILING, with distinct keys. */
  readonly purchases: readonly Purchase[];
  /** The message body in JSON. Encoded once; both the broker and the marker carry it. */
  readonly body: string;
}

/** Returns 127 random bits in base64url after a letter: commands take an argument that begins with `-` as an option. */
export function newBatchId(): string {
  const bytes = randomBytes(16);
  bytes.writeUInt8(bytes.readUInt8() & 0x7f);
  return bytes.toString('base64url');
}

/** Forms a batch and encodes its body once. */
export function sealBatch(parts: Omit<Batch, 'body'>): Batch {
  return { ...parts, body: encodeBody(parts) };
}

function encodeBody(batch: Omit<Batch, 'body'>): string {
  let version = BATCH_VERSION;
  const purchases = batch.purchases.map(({ userId, requestId, quantity, metadata }) => {
    if (metadata === undefined) return [userId, requestId, quantity];
    version = WITH_METADATA_VERSION;
    return [userId, requestId, quantity, metadata];
  });
  return JSON.stringify({
    v: version,
    batchId: batch.batchId,
    saleId: batch.saleId,
    bucket: batch.bucket,
    epoch: batch.epoch,
    createdAt: batch.createdAtMs,
    trace: batch.traceparent,
    purchases,
    traces: tracesOf(batch.purchases),
  });
}

/**
 * Lists trace ids by position of their purchase; undefined omits the field. The field needs no new version: a program
 * that does not know it records the same orders, which then cannot be found by trace id.
 */
function tracesOf(purchases: readonly Purchase[]): readonly (readonly [place: number, traceId: string])[] | undefined {
  let traces: [number, string][] | undefined;
  for (let place = 0; place < purchases.length; place++) {
    const traceId = purchases[place]?.traceId;
    if (traceId !== undefined) (traces ??= []).push([place, traceId]);
  }
  return traces;
}

/** Returns the log fields of a batch: its id and the trace ids of its purchases. */
export function logFieldsOf({
  batchId,
  purchases = [],
}: Pick<BatchRef, 'batchId'> & Partial<Pick<Batch, 'purchases'>>) {
  const traceIds = traceIdsOf(purchases);
  return traceIds.length === 0 ? { batchId } : { batchId, traceIds };
}

/** Lists buckets that may have units of a batch, its own first; after a reshard, its buyers' buckets too. */
export function bucketsOfBatch(batch: Batch, now: { readonly epoch: number; readonly buckets: number }): number[] {
  if (now.buckets <= 1 || now.epoch <= batch.epoch) return [batch.bucket];
  return [...new Set([batch.bucket, ...batch.purchases.flatMap(({ userId }) => homesEver(userId, now.buckets))])];
}

/** Reads a message body and checks everything in it. Returns a reason for a bad body; never throws. */
export function decodeBatch(body: string): { readonly outcome: 'decoded'; readonly batch: Batch } | Undecodable {
  const opened = openBody(body, BATCH_VERSION, WITH_METADATA_VERSION);
  if (opened.outcome !== 'opened') return opened;
  const { fields } = opened;
  const { batchId, saleId, bucket, epoch, createdAt, trace } = fields;
  if (!isId(batchId)) return bad('batchId is not an id');
  if (!isSaleId(saleId)) return bad('saleId is not a sale id');
  if (!isCount(bucket)) return bad('bucket is not a whole number from 0');
  if (!isCount(epoch) || epoch < 1) return bad('epoch is not a whole number from 1');
  if (!isCount(createdAt)) return bad('createdAt is not a time in ms');
  if (typeof trace !== 'string' || trace.length > 128) return bad('trace is not a short string');
  const purchases = decodePurchases(fields.purchases, fields.v === WITH_METADATA_VERSION ? 4 : 3);
  if (typeof purchases === 'string') return bad(purchases);
  if (fields.traces !== undefined) addTraceIds(purchases, fields.traces);
  const traceparent = trace !== '' && readTraceparent(trace) !== null ? trace : '';
  return {
    outcome: 'decoded',
    batch: { batchId, saleId, bucket, epoch, createdAtMs: createdAt, traceparent, purchases, body },
  };
}

/** Null unless the body is a batch. */
export function batchIn(body: string | null): Batch | null {
  const decoded = body === null ? null : decodeBatch(body);
  return decoded?.outcome === 'decoded' ? decoded.batch : null;
}

/** Adds the well-formed trace ids. Ignores a bad trace id, so that it never costs a purchase. */
function addTraceIds(purchases: Purchase[], traces: unknown): void {
  if (!Array.isArray(traces)) return;
  for (const pair of traces as unknown[]) {
    const [place, traceId] = Array.isArray(pair) ? (pair as unknown[]) : [];
    const purchase = typeof place === 'number' ? purchases[place] : undefined;
    if (purchase !== undefined && isTraceId(traceId)) purchases[place as number] = { ...purchase, traceId };
  }
}

/** @param valuesMax values of one purchase */
function decodePurchases(raw: unknown, valuesMax: 3 | 4): Purchase[] | string {
  if (!Array.isArray(raw) || raw.length === 0) return 'purchases is not a non-empty list';
  if (raw.length > BATCH_SIZE_CEILING) return `more than ${BATCH_SIZE_CEILING} purchases`;
  const keys = new Set<string>();
  const purchases: Purchase[] = [];
  for (const [index, item] of raw.entries()) {
    if (!Array.isArray(item) || item.length < 3 || item.length > valuesMax)
      return `purchase ${index} is not a list of ${valuesMax === 3 ? '3' : '3 or 4'} values`;
    const [userId, requestId, quantity, metadata] = item as unknown[];
    if (!isUserId(userId) || !isId(requestId)) return `purchase ${index} has a bad id`;
    if (!isQuantity(quantity)) return `purchase ${index} has a bad quantity`;
    if (item.length === 4 && !isMetadata(metadata)) return `purchase ${index} has bad metadata`;
    const purchase: Purchase =
      item.length === 4
        ? { userId, requestId, quantity, metadata: metadata as Metadata }
        : { userId, requestId, quantity };
    keys.add(purchaseKey(purchase));
    purchases.push(purchase);
  }
  return keys.size === purchases.length ? purchases : 'a key appears twice';
}

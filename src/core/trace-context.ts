import { randomBytes } from 'node:crypto';

/** Name of the request header and message property with the span. Not signed, but only traces depend on it. */
export const TRACEPARENT = 'traceparent';

/** @param traceparent '' or undefined: not traced */
export const traceProperty = (traceparent: string | undefined): Readonly<Record<string, string>> =>
  traceparent === undefined || traceparent === '' ? {} : { [TRACEPARENT]: traceparent };

/** The content of a `traceparent` (W3C Trace Context). */
export interface TraceParent {
  /** 32 hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** Id of the span to which the work belongs: 16 hexadecimal digits, not all zero. */
  readonly spanId: string;
  /** Whether the sender records the trace. */
  readonly isSampled: boolean;
}

const [TRACE_ID_AT, TRACE_ID_END] = [3, 35];
const [SPAN_ID_AT, SPAN_ID_END] = [36, 52];
const [FLAGS_AT, FLAGS_END] = [53, 55];
const [DASH, DIGIT_0, DIGIT_9, LETTER_A, LETTER_F] = [0x2d, 0x30, 0x39, 0x61, 0x66];

/**
 * Returns null unless well-formed. Uses no regular expressions, because anyone may send any `traceparent` with every
 * request. Reads the known part of versions after 00, as the standard requires.
 */
export function readTraceparent(text: string): TraceParent | null {
  if (text.length < FLAGS_END || !areHexDigits(text, 0, 2) || text.startsWith('ff')) return null;
  if (text.length > FLAGS_END && (text.startsWith('00') || text.charCodeAt(FLAGS_END) !== DASH)) return null;
  for (const at of [2, TRACE_ID_END, SPAN_ID_END]) if (text.charCodeAt(at) !== DASH) return null;
  if (!isFilled(text, TRACE_ID_AT, TRACE_ID_END) || !isFilled(text, SPAN_ID_AT, SPAN_ID_END)) return null;
  if (!areHexDigits(text, FLAGS_AT, FLAGS_END)) return null;
  return {
    traceId: text.slice(TRACE_ID_AT, TRACE_ID_END),
    spanId: text.slice(SPAN_ID_AT, SPAN_ID_END),
    isSampled: (Number.parseInt(text.slice(FLAGS_AT, FLAGS_END), 16) & 1) === 1,
  };
}

export const traceparentOf = ({ traceId, spanId }: Omit<TraceParent, 'isSampled'>): string =>
  `00-${traceId}-${spanId}-01`;

function areHexDigits(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    const isDigit = code >= DIGIT_0 && code <= DIGIT_9;
    if (!isDigit && !(code >= LETTER_A && code <= LETTER_F)) return false;
  }
  return true;
}

/** Returns false for an id of zeros. */
function isFilled(text: string, from: number, to: number): boolean {
  if (!areHexDigits(text, from, to)) return false;
  for (let at = from; at < to; at++) if (text.charCodeAt(at) !== DIGIT_0) return true;
  return false;
}

const TRACE_ID_LENGTH = TRACE_ID_END - TRACE_ID_AT;

export const isTraceId = (value: unknown): value is string =>
  typeof value === 'string' && value.length === TRACE_ID_LENGTH && isFilled(value, 0, TRACE_ID_LENGTH);

/** Finds the trace id in typed text: a trace id, even in capitals, or a whole `traceparent`. Null if it is neither. */
export function typedTraceId(text: string): string | null {
  const lower = text.toLowerCase();
  return isTraceId(lower) ? lower : (readTraceparent(lower)?.traceId ?? null);
}

/** Number of ids made from one draw of random bytes. */
const IDS_PER_DRAW = 256;
let drawn = '';
let drawnAt = 0;

/** Returns a new trace id in some tens of ns, because every answer needs one. */
export function newTraceId(): string {
  if (drawnAt === drawn.length) {
    drawn = randomBytes((IDS_PER_DRAW * TRACE_ID_LENGTH) / 2).toString('hex');
    drawnAt = 0;
  }
  const from = drawnAt;
  drawnAt += TRACE_ID_LENGTH;
  return drawn.slice(from, drawnAt);
}

/** Caches the last batch, because its purchases ask one after the other. */
let latestBatchId = '';
let latestTraceId: string | null = null;

/**
 * Returns the trace id that finds a batch: the 16 random bytes of its id. So a purchase without a trace id can be found
 * too, and nothing is stored. Null for ids not made by `newBatchId`.
 */
export function traceIdOfBatch(batchId: string): string | null {
  if (batchId === latestBatchId) return latestTraceId;
  const traceId = Buffer.from(batchId, 'base64url').toString('hex');
  latestTraceId = batchIdOfTrace(traceId) === batchId ? traceId : null;
  latestBatchId = batchId;
  return latestTraceId;
}

/** Reverses `traceIdOfBatch`. Null for anything but a trace id. */
export const batchIdOfTrace = (traceId: string): string | null =>
  isTraceId(traceId) ? Buffer.from(traceId, 'hex').toString('base64url') : null;

/** Lists the trace ids of these purchases, each once. */
export function traceIdsOf(purchases: readonly { readonly traceId?: string }[]): readonly string[] {
  let ids: Set<string> | null = null;
  for (const { traceId } of purchases) if (traceId !== undefined) (ids ??= new Set()).add(traceId);
  return ids === null ? NONE : [...ids];
}

const NONE: readonly string[] = [];

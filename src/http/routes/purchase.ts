import { z } from 'zod';
import { id, saleParams, text } from '../../contract/fields.js';
import { metadataSchema } from '../../contract/orders.js';
import { purchaseSchema } from '../../contract/purchases.js';
import { assertNever, OperationalError } from '../../core/errors.js';
import { isSaleId } from '../../core/ids.js';
import { METADATA_BYTES_MAX, metadataFault, type Metadata } from '../../core/metadata.js';
import { parseJson } from '../../core/parse-json.js';
import { batchOfEntry, REFUSALS, type PurchaseOutcome, type Refusal, type RequestEntry } from '../../core/outcome.js';
import { isQuantity, QUANTITY_MAX, type RequestRef } from '../../core/purchase.js';
import { traceIdOfBatch } from '../../core/trace-context.js';
import { json, PreparedProblem, problem, type Answer } from '../answer.js';
import { BODY_BYTES_MAX, hasLongBody, promisesJson } from '../body.js';
import { NOSNIFF } from '../problem.js';
import { defineRoute, type BodyRead, type Call, type RouteServices } from '../route.js';
import { PURCHASE_TOKEN, QUEUE_PASS, SIGNATURE } from './proof-headers.js';

/**
 * Buys. The server handles this route without Express and without zod, because either would cost several times as much
 * as the rest of a refusal. The schema of the body is only for the document, and a test compares it with `readWanted`.
 */
export const purchase = defineRoute({
  method: 'post',
  path: '/v1/sales/{saleId}/purchases',
  label: 'purchase',
  operationId: 'buy',
  summary: 'Buys units of a sale. Create one Idempotency-Key per purchase and keep it. Any retry with it is safe.',
  access: 'purchase',
  params: saleParams,
  headers: [
    {
      name: 'Idempotency-Key',
      required: true,
      description: 'the id of this purchase, which the client creates before the first attempt',
      schema: id,
    },
    {
      name: 'traceparent',
      required: false,
      description: 'W3C trace context; `Trace-Id` returns its trace id, which finds the purchase',
      schema: text,
    },
    ...SIGNATURE,
    PURCHASE_TOKEN,
    QUEUE_PASS,
  ],
  body: {
    schema: z.strictObject({
      quantity: z.int().min(1).max(QUANTITY_MAX).default(1),
      metadata: metadataSchema
        .refine((metadata) => metadataFault(metadata) === null)
        .optional()
        .meta({ description: `stored with the order and its events; at most ${METADATA_BYTES_MAX} bytes as JSON` }),
    }),
    required: false,
    bytesMax: BODY_BYTES_MAX,
    read(text): BodyRead<Wanted> {
      const wanted = readWanted(text);
      return typeof wanted === 'string' ? { wrong: { detail: wanted } } : { value: wanted };
    },
  },
  answers: {
    200: { description: 'a repeated request: the order, or how the purchase failed', schema: purchaseSchema },
    202: {
      description: 'accepted: the units are held for this buyer',
      schema: purchaseSchema,
      headers: { Location: 'the status of the purchase' },
    },
  },
  problems: [...REFUSALS, 'outcome_unknown'],
  checkHead({ params, requestId, req }) {
    if (!isSaleId(params.saleId)) return problem('bad_request', { requestId, detail: SALE_ID_SHAPE });
    if (requestId === null) return problem('bad_request', { detail: KEY_SHAPE });
    return promisesJson(req.headers) ? null : problem('unsupported_media_type', { requestId });
  },
  early({ req, params, userId, requestId }, { gate }) {
    gate.countAttempt(params.saleId);
    // A chunked body must be read anyway to keep its connection, so in that case the gate itself answers sold_out.
    if (hasLongBody(req) || requestId === null) return null;
    const refusal = gate.refuseEarly(params.saleId, userId);
    return refusal === null ? null : PREPARED[refusal].answer(requestId);
  },
  async handle(call, services) {
    const { params, userId, body, span } = call;
    const requestId = call.requestId as string; // checkHead has checked it
    const traceId = storedTraceId(call, services.traceIdsStored);
    const { saleId } = params;
    const { quantity, metadata } = body;
    const entered = await services.gate.enter({ saleId, userId, requestId, quantity, metadata, traceId, span });
    const batchId = call.traceId === '' ? batchIn(entered) : null; // without its own trace, it is found by its batch
    if (batchId !== null) call.traceId = traceIdOfBatch(batchId) ?? '';
    if (entered.outcome === 'accepted') return pendingAnswer(saleId, requestId, 'accepted', call.mount);
    if (entered.outcome === 'replayed')
      return replayAnswer({ saleId, userId, requestId }, entered.entry, call.mount, services);
    if (entered.outcome === 'not_open') return notOpenAnswer(saleId, requestId, services);
    return PREPARED[entered.outcome].answer(requestId);
  },
});

const KEY_SHAPE = 'Send the header Idempotency-Key once: 1 to 64 of the characters A-Z a-z 0-9 _ -';
const SALE_ID_SHAPE = 'The sale id in the address must be a whole number.';

const PREFIX = '/v1/sales/';
const SUFFIX = '/purchases';

/** Returns the unchecked sale id in the address of a purchase. Null for any other address. */
export function saleIdOf(target: string): string | null {
  // A proxy may send an absolute URL, which every server must accept (RFC 9112, 3.2.2).
  const url = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?]*/i, '');
  if (!url.startsWith(PREFIX)) return null;
  const query = url.indexOf('?');
  const end = (query === -1 ? url.length : query) - SUFFIX.length;
  if (end < PREFIX.length || !url.startsWith(SUFFIX, end)) return null;
  const saleId = url.slice(PREFIX.length, end);
  return saleId.includes('/') ? null : saleId;
}

/** Returns the trace id to store with a purchase, by which it can be found. Undefined if none is stored. */
function storedTraceId({ parent, span }: Call, stored: RouteServices['traceIdsStored']): string | undefined {
  if (stored === 'none') return undefined;
  return parent !== null && (stored === 'all' || parent.isSampled) ? parent.traceId : span?.traceId;
}

/** Returns the batch of a purchase, if its outcome names the batch. */
function batchIn(entered: PurchaseOutcome): string | null {
  if (entered.outcome === 'replayed') return batchOfEntry(entered.entry);
  return entered.outcome === 'accepted' || entered.outcome === 'outcome_unknown' ? (entered.batchId ?? null) : null;
}

/** The content of a body. */
interface Wanted {
  /** Number of units. */
  readonly quantity: number;
  readonly metadata: Metadata | undefined;
}

const ONE_UNIT: Wanted = { quantity: 1, metadata: undefined };
/** The latest body without metadata. In a rush nearly all buyers send the same text. */
let latest = { text: '', wanted: ONE_UNIT };

/** Reads a body, or returns a sentence that says what is wrong with it. An empty body asks for one unit. */
export function readWanted(text: string): Wanted | string {
  if (text === '') return ONE_UNIT;
  if (text === latest.text) return latest.wanted;
  const parsed = parseJson(text, 'The body');
  if ('error' in parsed) return parsed.error;
  const body = parsed.value;
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return 'The body must be a JSON object.';
  let quantity: unknown = 1;
  let metadata: Metadata | undefined;
  // Object.keys sees `__proto__`, which JSON.parse makes an own field; it is then refused like any other unknown field.
  for (const field of Object.keys(body)) {
    if (field === 'quantity') quantity = (body as { quantity: unknown }).quantity;
    else if (field === 'metadata') {
      const given = (body as { metadata: unknown }).metadata;
      const fault = metadataFault(given);
      if (fault !== null) return fault;
      if (Object.keys(given as Metadata).length > 0) metadata = given as Metadata;
    } else return unknownField(field);
  }
  if (!isQuantity(quantity)) return `quantity must be a whole number from 1 to ${QUANTITY_MAX}.`;
  const wanted = { quantity, metadata };
  if (metadata === undefined) latest = { text, wanted };
  return wanted;
}

function unknownField(field: string): string {
  if (field === 'userId') return 'The body must not have userId. The token names the buyer.';
  return `Unknown field ${JSON.stringify(field.slice(0, 40))}; only quantity and metadata are allowed.`;
}

type PreparedCode = Refusal | 'outcome_unknown';
const PREPARED = Object.fromEntries(
  [...REFUSALS, 'outcome_unknown' as const].map((code) => [code, new PreparedProblem(code)]),
) as Record<PreparedCode, PreparedProblem<PreparedCode>>;

/** Maximum random delay that is added to a retry after the opening, in ms, so that not all buyers return at once. */
const OPENING_JITTER_MS = 2000;
/** Maximum number of cached answers, one per opening and second of waiting time. A few sales need no more. */
const BEFORE_OPENING_MAX = 64;
const beforeOpening = new Map<string, PreparedProblem<'not_open'>>();

/** Says when the sale opens, if the api knows that. A sale that waits for its operator has no known opening time. */
function notOpenAnswer(saleId: string, requestId: string, { snapshots, clock }: RouteServices): Answer<PreparedCode> {
  const known = snapshots.peek(saleId);
  const opensAtMs = known !== undefined && 'sale' in known ? known.sale.opensAtMs : 0;
  const untilMs = opensAtMs - clock.nowMs();
  if (untilMs <= 0) return PREPARED.not_open.answer(requestId);
  const seconds = Math.ceil((untilMs + Math.random() * OPENING_JITTER_MS) / 1000);
  const key = `${opensAtMs}/${seconds}`;
  let prepared = beforeOpening.get(key);
  if (prepared === undefined) {
    if (beforeOpening.size >= BEFORE_OPENING_MAX) beforeOpening.clear();
    prepared = new PreparedProblem('not_open', { retryAfterMs: seconds * 1000, opensAtMs });
    beforeOpening.set(key, prepared);
  }
  return prepared.answer(requestId);
}

/** Returns the answer to a purchase whose units are held. A repeated key gets it until the order is written. */
export function pendingAnswer(
  saleId: string,
  requestId: string,
  word: 'accepted' | 'replayed',
  mount = '',
): Answer<202> {
  const body = `{"requestId":"${requestId}","status":"pending"}`;
  const location = `${mount}/v1/sales/${saleId}/purchases/${requestId}`;
  const length = String(body.length);
  const headers = ['Content-Type', 'application/json', ...NOSNIFF, 'Content-Length', length, 'Location', location];
  return { status: 202, word, headers, body, encoding: 'latin1' };
}

/** Answers a repeated key with the state of its purchase: the units are still held, or the row shows the result. */
async function replayAnswer(
  asked: RequestRef,
  entry: RequestEntry,
  mount: string,
  { getPurchase }: RouteServices,
): Promise<Answer<200 | 202 | 'outcome_unknown'>> {
  const { saleId, requestId } = asked;
  if (entry.state === 'held') return pendingAnswer(saleId, requestId, 'replayed', mount);
  const status = await getPurchase.get({ ...asked, waitMs: 0, signal: NEVER }).catch((error: unknown) => {
    if (error instanceof OperationalError && entry.state === 'ordered') return null; // the order exists nevertheless
    throw error;
  });
  if (status === null && entry.state === 'ordered') {
    return json(200, 'replayed', { requestId, status: 'ordered', orderId: entry.orderId }, []);
  }
  switch (status?.status) {
    case 'ordered':
    case 'failed':
      return json(200, 'replayed', { requestId, ...status }, []);
    case 'pending': // Redis has an order that MySQL has lost. An operator will decide, so the answer is not final.
      return pendingAnswer(saleId, requestId, 'replayed', mount);
    case 'not_found':
    case undefined:
      return PREPARED.outcome_unknown.answer(requestId) as Answer<'outcome_unknown'>;
    default:
      return assertNever(status);
  }
}

/** Never aborts, because a replay is answered at once. */
const NEVER = new AbortController().signal;

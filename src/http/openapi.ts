import { QUANTITY_MAX } from '../domain/purchase.js';
import { ORDER_STATES, FAILURE_REASONS } from '../domain/order.js';
import { COMPENSATED_KINDS, FINDING_KINDS } from '../domain/sale-finding.js';
import { JOB_STATES } from '../ports/compensation-book.js';
import { DEAD_LETTER_REASONS, DEAD_LETTER_STATES } from '../ports/dead-letters.js';
import { SALE_STATES } from '../domain/sale.js';
import { STANDINGS } from '../trace/standing-of.js';
import { TRACE_SOURCES } from '../trace/steps-of.js';
import { STEP_RANKS } from '../purchase/purchase-step.js';
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode } from './problem.js';

const text = { type: 'string' } as const;
const time = { type: 'string', format: 'date-time' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const id = { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' } as const;
const orNull = (schema: { readonly type: string }): object => ({ ...schema, type: [schema.type, 'null'] });

const object = (properties: Record<string, object>, required = Object.keys(properties)): object => ({
  type: 'object',
  ...{ properties, required },
});
const json = (description: string, schema: object): object => ({
  description,
  content: { 'application/json': { schema } },
});
const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const body = (schema: object, required: boolean): object => ({ required, content: { 'application/json': { schema } } });

/** One response per status; its description names every code that comes with it. */
function problems(...codes: ProblemCode[]): Record<string, object> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const content = { [PROBLEM_TYPE]: { schema: ref('Problem') } };
  return Object.fromEntries(
    [...byStatus].map(([status, words]) => [String(status), { description: words.join(', '), content }]),
  );
}

const parameter = (place: 'path' | 'query' | 'header', name: string, schema: object, required = true): object => ({
  ...{ name, in: place, required, schema },
});
const SALE_ID = parameter('path', 'saleId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });
const BEARER = [{ bearer: [] }];
const COMMON = ['bad_request', 'internal', 'unavailable'] as const;
const ADMIN = ['unauthorized', 'forbidden', ...COMMON] as const;

const saleShared = {
  ...{ saleId: text, sku: text, title: text, priceCents: count, limitPerBuyer: count },
  ...{ opensAt: time, closesAt: time },
};

const deadLetter = {
  ...{ letterId: text, messageId: text, group: text, originTopic: text },
  ...{ saleId: orNull(text), batchId: orNull(text), reason: { enum: DEAD_LETTER_REASONS }, detail: text },
  ...{ attempts: count, state: { enum: DEAD_LETTER_STATES }, parkedAt: time },
  ...{ replays: count, replayStartedAt: orNull(time), note: orNull(text) },
};

const order = {
  ...{ orderId: text, saleId: text, requestId: id, quantity: count, amountCents: count },
  state: { enum: ORDER_STATES },
  reason: { enum: [...FAILURE_REASONS, null] },
  ...{ createdAt: time, expiresAt: orNull(time), paidAt: orNull(time) },
};
const refund = object({ amountCents: count, state: { enum: ['due', 'refunded'] }, reason: text });

const schemas = {
  Problem: object(
    {
      type: text,
      title: text,
      status: { type: 'integer' },
      detail: text,
      code: { enum: Object.keys(PROBLEMS) },
      requestId: orNull(text),
      retryable: { type: 'boolean' },
      retryAfterMs: count,
      errors: { type: 'array', items: object({ field: text, message: text }) },
    },
    ['type', 'title', 'status', 'detail', 'code', 'requestId', 'retryable'],
  ),
  Purchase: object(
    {
      requestId: id,
      saleId: text,
      status: { enum: ['pending', 'ordered', 'failed'] },
      orderId: text,
      orderState: { enum: ORDER_STATES },
      reason: text,
    },
    ['requestId', 'status'],
  ),
  SalePage: object({
    ...saleShared,
    state: { enum: ['not_open', 'open', 'paused', 'closed', 'loading'] },
    stock: { enum: ['plenty', 'few', 'none', 'unknown'] },
    serverTime: time,
  }),
  Sale: object({
    ...saleShared,
    ...{ stock: count, sold: count, buckets: count, epoch: count },
    state: { enum: SALE_STATES },
  }),
  NewSale: object({
    sku: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
    title: { type: 'string', minLength: 1, maxLength: 200 },
    priceCents: count,
    stock: { type: 'integer', minimum: 1, maximum: 10_000_000 },
    limitPerBuyer: { type: 'integer', minimum: 1, maximum: 1000 },
    ...{ opensAt: time, closesAt: time },
  }),
  Order: object(order),
  OrderWithRefunds: object({ ...order, refunds: { type: 'array', minItems: 1, items: refund } }, Object.keys(order)),
  PaymentEvent: object(
    { type: { type: 'string', description: '`payment.succeeded`' }, paymentId: id, orderId: text, amountCents: count },
    ['type'],
  ),
  DeadLetter: object(deadLetter),
  DeadLetterWithBody: object({ ...deadLetter, batch: { type: ['object', 'null'] }, body: text }),
  AuditEntry: object({
    ...{ auditId: text, at: time, actor: text, action: text, subject: text },
    ...{ before: {}, after: {} },
  }),
  Trace: object({
    ...{ userId: id, saleId: text, requestId: id, state: { enum: STANDINGS }, sentence: text },
    steps: {
      type: 'array',
      items: object({ at: orNull(time), source: { enum: TRACE_SOURCES }, what: text, detail: text }),
    },
  }),
  SaleReport: object({
    ...{ runId: text, outcome: { enum: ['match', 'findings'] }, saleId: text },
    figures: { type: 'object', additionalProperties: { type: 'integer' } },
    counts: { type: 'object', additionalProperties: count },
    findings: { type: 'array', items: { $ref: '#/components/schemas/SaleFinding' } },
    jobs: { type: 'array', items: { $ref: '#/components/schemas/CompensationJob' } },
  }),
  SaleFinding: object({ kind: { enum: FINDING_KINDS }, saleId: text }),
  ReconcileRun: object({
    ...{ runId: text, saleId: orNull(text), applied: { type: 'boolean' }, actor: text },
    ...{ startedAt: time, finishedAt: orNull(time), outcome: { enum: ['match', 'findings', 'failed', null] } },
    figures: { type: 'object', additionalProperties: { type: 'integer' } },
    findings: { type: 'array', items: { $ref: '#/components/schemas/SaleFinding' } },
  }),
  CompensationJob: object({
    ...{ jobId: text, kind: { enum: COMPENSATED_KINDS }, saleId: text, subject: text, batchId: orNull(text) },
    ...{ userId: orNull(text), requestId: orNull(text), detail: text, state: { enum: JOB_STATES } },
    ...{ attempts: count, lastError: orNull(text), availableAt: time, createdAt: time, updatedAt: time },
  }),
  Ready: object({
    ready: { type: 'boolean' },
    dependencies: { type: 'array', items: object({ name: text, ok: { type: 'boolean' }, detail: text }) },
  }),
};

const purchase = {
  operationId: 'buy',
  summary: 'Buy. Make the key once per purchase and keep it: every retry with it is safe.',
  security: BEARER,
  parameters: [SALE_ID, parameter('header', 'Idempotency-Key', id), parameter('header', 'traceparent', text, false)],
  requestBody: body(
    object({ quantity: { type: 'integer', minimum: 1, maximum: QUANTITY_MAX, default: 1 } }, []),
    false,
  ),
  responses: {
    200: json('asked before: the order is there, or how it ended', ref('Purchase')),
    202: json('the units are held for this buyer; see Location', ref('Purchase')),
    ...problems(
      ...([...COMMON, 'unauthorized', 'not_found', 'request_conflict', 'sold_out', 'limit_reached'] as const),
      ...(['not_open', 'closed', 'paused', 'loading', 'overloaded', 'outcome_unknown'] as const),
      ...(['payload_too_large', 'unsupported_media_type'] as const),
    ),
  },
};

const purchaseStatus = {
  operationId: 'readPurchase',
  summary: 'Where a purchase stands; waits up to `wait` seconds while it is pending.',
  security: BEARER,
  parameters: [
    SALE_ID,
    parameter('path', 'requestId', id),
    parameter('query', 'wait', { type: 'integer', minimum: 0, maximum: 30 }, false),
  ],
  responses: {
    200: json('the purchase', ref('Purchase')),
    ...problems(...COMMON, 'unauthorized', 'purchase_not_found'),
  },
};

const purchaseEvents = {
  operationId: 'followPurchase',
  summary: 'The purchase as a stream of events, from where it stands to its end. Come again with Last-Event-ID.',
  security: BEARER,
  parameters: [
    SALE_ID,
    parameter('path', 'requestId', id),
    parameter('header', 'Last-Event-ID', { enum: Object.keys(STEP_RANKS) }, false),
  ],
  responses: {
    200: {
      description:
        'id and event: `pending`, `ordered`, then `paid`, `cancelled` or `expired`, or `failed`; data: the purchase as' +
        ' JSON. The stream ends behind the last one, or after a time, with `retry`.',
      content: { 'text/event-stream': { schema: text } },
    },
    204: { description: 'Last-Event-ID was the end: nothing more will come' },
    ...problems(...COMMON, 'unauthorized', 'purchase_not_found', 'overloaded'),
  },
};

const adminMove = (verb: string): object => ({
  post: {
    operationId: `${verb}Sale`,
    summary: `${verb} a sale; safe to repeat`,
    security: BEARER,
    parameters: [SALE_ID],
    responses: {
      200: json('the sale as it now is', ref('Sale')),
      ...problems(...ADMIN, 'not_found', 'wrong_state', 'not_warmed', 'repairing'),
    },
  },
});

const probe = (operationId: string, ok: object, other: object = {}): object => ({
  get: { operationId, responses: { 200: ok, ...other } },
});

const adminSales = {
  post: {
    operationId: 'createSale',
    security: BEARER,
    requestBody: body(ref('NewSale'), true),
    responses: {
      201: json('the new sale, a draft', ref('Sale')),
      ...problems(...ADMIN, 'payload_too_large', 'unsupported_media_type'),
    },
  },
  get: {
    operationId: 'listSales',
    security: BEARER,
    responses: {
      200: json('sales, newest first', object({ sales: { type: 'array', items: ref('Sale') } })),
      ...problems(...ADMIN),
    },
  },
};

const ORDER_ID = parameter('path', 'orderId', { type: 'string', pattern: '^[1-9][0-9]{0,18}$' });

const payOrder = {
  operationId: 'payOrder',
  summary: 'Pay an order. One Idempotency-Key is one charge; without it all tries are one. Safe to repeat.',
  security: BEARER,
  parameters: [ORDER_ID, parameter('header', 'Idempotency-Key', id, false)],
  responses: {
    200: json('the order, paid now or before', ref('Order')),
    ...problems(...COMMON, 'unauthorized', 'order_not_found', 'wrong_state', 'refund_due', 'payment_declined'),
    ...problems('payment_not_configured', 'unavailable', 'outcome_unknown'),
  },
};

const cancelOrder = {
  operationId: 'cancelOrder',
  summary: 'Give up an order that is not paid. Safe to repeat.',
  security: BEARER,
  parameters: [ORDER_ID],
  responses: {
    200: json('the order, cancelled now or before', ref('Order')),
    ...problems(...COMMON, 'unauthorized', 'order_not_found', 'wrong_state'),
  },
};

const paymentWebhook = {
  operationId: 'tellPayment',
  summary: 'A payment provider tells what it took. Safe to repeat: a payment counts once, by its id.',
  parameters: [
    parameter('header', 'Payment-Signature', {
      ...{ type: 'string', pattern: '^t=[0-9]{1,12},v1=[0-9a-f]{64}$' },
      description: 't: unix seconds, at most 300 from now; v1: hex of HMAC-SHA-256 over "<t>.<body>"',
    }),
  ],
  requestBody: body(ref('PaymentEvent'), true),
  responses: {
    200: json(
      'taken: the order is paid, or the money is owed back; `ignored` for other types',
      object({ outcome: { enum: ['paid', 'refund_due', 'ignored'] }, orderId: text, paymentId: text }, ['outcome']),
    ),
    ...problems(...COMMON, 'bad_signature', 'order_not_found', 'payment_conflict', 'payload_too_large'),
    ...problems('unsupported_media_type', 'payment_not_configured'),
  },
};
const LETTER_ID = parameter('path', 'letterId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });
const filterBy = (name: string, schema: object): object => parameter('query', name, schema, false);

const deadLetters = {
  get: {
    operationId: 'listDeadLetters',
    summary: 'Dead letters, oldest first; `next` goes into `after` for the next page.',
    security: BEARER,
    parameters: [
      ...[filterBy('group', text), filterBy('saleId', text), filterBy('key', id)],
      ...[filterBy('reason', { enum: DEAD_LETTER_REASONS }), filterBy('state', { enum: DEAD_LETTER_STATES })],
      ...[filterBy('since', time), filterBy('until', time), filterBy('after', text)],
      filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 }),
    ],
    responses: {
      200: json('a page', object({ letters: { type: 'array', items: ref('DeadLetter') }, next: orNull(text) })),
      ...problems(...ADMIN),
    },
  },
};

const letterMove = (verb: string, summary: string, ...more: ProblemCode[]): object => ({
  post: {
    operationId: `${verb}DeadLetter`,
    summary: `${summary}; safe to repeat`,
    security: BEARER,
    parameters: [LETTER_ID],
    responses: {
      200: json('done, now or before', object({ outcome: text, letter: ref('DeadLetterWithBody') })),
      ...(verb === 'replay'
        ? { 202: json('published, not recorded yet', object({ outcome: text, letter: ref('DeadLetterWithBody') })) }
        : {}),
      ...problems(...ADMIN, 'dead_letter_not_found', 'wrong_state', ...more),
    },
  },
});

const auditLog = {
  get: {
    operationId: 'listAudit',
    summary: 'Who did what, newest first; `next` goes into `before` for the next page.',
    security: BEARER,
    parameters: [
      ...[filterBy('subject', text), filterBy('actor', text), filterBy('action', text)],
      ...[filterBy('since', time), filterBy('before', text)],
      filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 }),
    ],
    responses: {
      200: json('a page', object({ entries: { type: 'array', items: ref('AuditEntry') }, next: orNull(text) })),
      ...problems(...ADMIN),
    },
  },
};

const traces = {
  get: {
    operationId: 'tracePurchase',
    summary:
      'The whole life of a purchase. An id that several buyers used gives all of them; `more`: not all are shown.',
    security: BEARER,
    parameters: [
      { ...parameter('path', 'id', id), description: 'request id, batch id or order id' },
      ...[filterBy('saleId', text), filterBy('userId', id)],
    ],
    responses: {
      200: json('found', object({ purchases: { type: 'array', items: ref('Trace') }, more: { type: 'boolean' } })),
      ...problems(...ADMIN, 'purchase_not_found'),
    },
  },
};

const JOB_ID = parameter('path', 'jobId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });
const ROWS = filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 });
const list = (items: string): object => ({ type: 'array', items: ref(items) });

const reconcileSale = {
  operationId: 'reconcileSale',
  summary: 'Compare Redis and MySQL for a sale; with `apply` mend what was found. Safe on a sale that is selling.',
  security: BEARER,
  parameters: [SALE_ID, filterBy('apply', { enum: ['true', 'false'], default: 'false' })],
  responses: {
    200: json('what was found, and the jobs made of it', ref('SaleReport')),
    ...problems(...ADMIN, 'not_found', 'reconcile_running'),
  },
};

const reconcileRuns = {
  operationId: 'listReconcileRuns',
  summary: 'Runs, newest first.',
  security: BEARER,
  parameters: [filterBy('saleId', text), ROWS],
  responses: { 200: json('runs', object({ runs: list('ReconcileRun') })), ...problems(...ADMIN) },
};

const compensationJobs = {
  operationId: 'listCompensationJobs',
  summary: 'Compensation jobs, oldest first; `next` goes into `after` for the next page.',
  security: BEARER,
  parameters: [
    ...[filterBy('saleId', text), filterBy('state', { enum: JOB_STATES })],
    ...[filterBy('kind', { enum: COMPENSATED_KINDS }), filterBy('after', text), ROWS],
  ],
  responses: {
    200: json('a page', object({ jobs: list('CompensationJob'), next: orNull(text) })),
    ...problems(...ADMIN),
  },
};

const retryJob = {
  operationId: 'retryCompensationJob',
  summary: 'Give a job a new run of attempts, from now on; safe to repeat.',
  security: BEARER,
  parameters: [JOB_ID],
  responses: {
    200: json('it is pending, or it was compensated', object({ outcome: text, job: ref('CompensationJob') })),
    ...problems(...ADMIN, 'job_not_found', 'wrong_state'),
  },
};

/** The API in OpenAPI 3.1. A guard test holds its paths against the mounted routes. */
export const OPENAPI = {
  openapi: '3.1.0',
  info: { title: 'Seckill', version: '1', description: 'A flash sale: sells exactly its stock.' },
  paths: {
    '/v1/sales/{saleId}/purchases': { post: purchase },
    '/v1/sales/{saleId}/purchases/{requestId}': { get: purchaseStatus },
    '/v1/sales/{saleId}/purchases/{requestId}/events': { get: purchaseEvents },
    '/v1/sales/{saleId}': {
      get: {
        operationId: 'readSalePage',
        parameters: [SALE_ID],
        responses: { 200: json('the sale', ref('SalePage')), ...problems(...COMMON, 'not_found', 'loading') },
      },
    },
    '/v1/orders/{orderId}': {
      get: {
        operationId: 'readOrder',
        security: BEARER,
        parameters: [ORDER_ID],
        responses: {
          200: json('the order, with what is or was owed back', ref('OrderWithRefunds')),
          ...problems(...COMMON, 'unauthorized', 'order_not_found'),
        },
      },
    },
    '/v1/orders/{orderId}/pay': { post: payOrder },
    '/v1/orders/{orderId}/cancel': { post: cancelOrder },
    '/v1/payments/webhook': { post: paymentWebhook },
    '/admin/v1/sales': adminSales,
    '/admin/v1/sales/{saleId}': {
      get: {
        operationId: 'readSale',
        security: BEARER,
        parameters: [SALE_ID],
        responses: { 200: json('the sale', ref('Sale')), ...problems(...ADMIN, 'not_found') },
      },
    },
    ...Object.fromEntries(
      ['warm', 'open', 'pause', 'resume', 'close'].map((verb) => [`/admin/v1/sales/{saleId}/${verb}`, adminMove(verb)]),
    ),
    '/admin/v1/dead-letters': deadLetters,
    '/admin/v1/dead-letters/{letterId}': {
      get: {
        operationId: 'readDeadLetter',
        security: BEARER,
        parameters: [LETTER_ID],
        responses: {
          200: json('the letter with its body', ref('DeadLetterWithBody')),
          ...problems(...ADMIN, 'dead_letter_not_found'),
        },
      },
    },
    '/admin/v1/dead-letters/{letterId}/replay': letterMove(
      'replay',
      'send the batch to the workers again and follow it to its rows',
      'not_replayable',
    ),
    '/admin/v1/dead-letters/{letterId}/discard': letterMove('discard', 'give the batch up: failed rows, units go back'),
    '/admin/v1/audit': auditLog,
    '/admin/v1/requests/{id}': traces,
    '/admin/v1/reconcile/sales/{saleId}': { post: reconcileSale },
    '/admin/v1/reconcile/runs': { get: reconcileRuns },
    '/admin/v1/reconcile/jobs': { get: compensationJobs },
    '/admin/v1/reconcile/jobs/{jobId}/retry': { post: retryJob },
    '/healthz': probe('healthz', json('the process is alive', object({ status: { const: 'alive' } }))),
    '/readyz': probe('readyz', json('send traffic', ref('Ready')), { 503: json('do not, and why', ref('Ready')) }),
    '/metrics': probe('metrics', { description: 'Prometheus', content: { 'text/plain': { schema: text } } }),
    '/openapi.json': probe('openapi', json('this document', { type: 'object' })),
  },
  components: { schemas, securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } } },
};

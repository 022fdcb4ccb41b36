import { ORDER_STATES, FAILURE_REASONS } from '../../core/order.js';
import { COMPENSATED_KINDS, FINDING_KINDS } from '../../core/sale-finding.js';
import { JOB_STATES } from '../../core/ports/compensation-repository.js';
import { RUN_OUTCOMES } from '../../core/ports/reconcile-runs.js';
import { DEAD_LETTER_REASONS, DEAD_LETTER_STATES } from '../../core/ports/dead-letter-repository.js';
import { REFUND_STATES } from '../../core/ports/refund-repository.js';
import { SALE_STATES } from '../../core/sale.js';
import { BUCKETS_MAX } from '../../core/unit-transfer.js';
import { STANDINGS } from '../../recovery/trace/standing-of.js';
import { TRACE_SOURCES } from '../../recovery/trace/steps-of.js';
import { PROBLEMS } from '../problem.js';
import { count, id, object, orNull, paymentId, text, time } from './parts.js';

const saleShared = {
  ...{ saleId: text, sku: text, title: text, priceCents: count, limitPerBuyer: count },
  ...{ opensAt: time, closesAt: time },
};

const deadLetter = {
  ...{ deadLetterId: text, messageId: text, group: text, originTopic: text },
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
const refund = object({ amountCents: count, state: { enum: REFUND_STATES }, reason: text });

export const schemas = {
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
  Degraded: object(
    {
      degraded: {
        enum: ['L1', 'L2', 'L3'],
        description: 'an old answer, the essential fields of one, or an empty one',
      },
      ageMs: { ...count, description: 'how old it is, in ms; absent: just read, or nothing is known' },
    },
    ['degraded'],
  ),
  Sale: object({
    ...saleShared,
    ...{ stock: count, sold: count, buckets: count, epoch: count },
    state: { enum: SALE_STATES },
  }),
  NewSale: object(
    {
      sku: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
      title: { type: 'string', minLength: 1, maxLength: 200 },
      priceCents: count,
      stock: { type: 'integer', minimum: 1, maximum: 10_000_000 },
      limitPerBuyer: { type: 'integer', minimum: 1, maximum: 1000 },
      buckets: { type: 'integer', minimum: 1, maximum: BUCKETS_MAX, default: 1 },
      ...{ opensAt: time, closesAt: time },
    },
    ['sku', 'title', 'priceCents', 'stock', 'limitPerBuyer', 'opensAt', 'closesAt'],
  ),
  Order: object(order),
  OrderWithRefunds: object({ ...order, refunds: { type: 'array', minItems: 1, items: refund } }, Object.keys(order)),
  PaymentEvent: object(
    { type: { type: 'string', description: '`payment.succeeded`' }, paymentId, orderId: text, amountCents: count },
    ['type'],
  ),
  Refund: object({
    ...{ paymentId, orderId: text, amountCents: count, reason: text, state: { enum: REFUND_STATES } },
    ...{ attempts: count, lastError: orNull(text), createdAt: time, updatedAt: time },
  }),
  DeadLetter: object(deadLetter),
  DeadLetterWithBody: object({ ...deadLetter, batch: { type: ['object', 'null'] }, body: text }),
  Rules: object({
    version: count,
    rules: { type: 'object', description: 'one part per layer of the entry; each has a `mode`: off, dry_run or on' },
  }),
  RuleChange: object({ version: count, actor: text, at: time }),
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
    ...{ runId: text, outcome: { enum: ['match', 'findings', 'partly'] }, saleId: text, more: { type: 'boolean' } },
    figures: { type: 'object', additionalProperties: { type: 'integer' } },
    counts: { type: 'object', additionalProperties: count },
    findings: { type: 'array', items: { $ref: '#/components/schemas/SaleFinding' } },
    jobs: { type: 'array', items: { $ref: '#/components/schemas/CompensationJob' } },
  }),
  SaleFinding: object({ kind: { enum: FINDING_KINDS }, saleId: text }),
  ReconcileRun: object({
    ...{ runId: text, saleId: orNull(text), applied: { type: 'boolean' }, actor: text },
    ...{ startedAt: time, finishedAt: orNull(time), outcome: { enum: [...RUN_OUTCOMES, null] } },
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

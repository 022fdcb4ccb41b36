import { z } from 'zod';
import { JOB_STATES } from '../core/ports/compensation-repository.js';
import { RUN_OUTCOMES } from '../core/ports/reconcile-runs.js';
import { FAILURE_REASONS } from '../core/order.js';
import { COMPENSATED_KINDS, FINDING_KINDS } from '../core/sale-finding.js';
import { count, text, time, type BodyOf } from './fields.js';

const job = z
  .object({
    jobId: text,
    kind: z.enum(COMPENSATED_KINDS),
    saleId: text,
    subject: text,
    batchId: text.nullable(),
    userId: text.nullable(),
    requestId: text.nullable(),
    detail: text,
    state: z.enum(JOB_STATES),
    attempts: count,
    lastError: text.nullable(),
    availableAt: time,
    createdAt: time,
    updatedAt: time,
  })
  .meta({ id: 'CompensationJob' });
export const jobPage = z.object({ jobs: z.array(job), next: text.nullable() });
export const retriedJob = z.object({ outcome: z.enum(['retried', 'compensated']), job });

const finding = z
  .looseObject({ kind: z.enum(FINDING_KINDS), saleId: text })
  .meta({ id: 'SaleFinding', description: 'has further fields that depend on `kind`' });
const figures = z.record(text, z.int());

export const saleReport = z
  .object({
    runId: text,
    outcome: z.enum(['match', 'findings', 'partly']),
    saleId: text,
    more: z.boolean(),
    figures,
    counts: z.record(text, count),
    findings: z.array(finding),
    jobs: z.array(job),
  })
  .meta({ id: 'SaleReport' });

const resolvedOrder = z
  .object({
    saleId: text,
    userId: text,
    requestId: text,
    orderId: text.nullable(),
    quantity: count,
    outcome: z.enum(['written', 'failed', 'recorded', 'left']),
    reason: z.enum(FAILURE_REASONS).nullable(),
    evidence: z
      .array(text)
      .meta({ description: 'what the broker still keeps of the order: `message`, or types of events' }),
    note: text.nullable(),
  })
  .meta({ id: 'ResolvedOrder' });
export const resolvedSale = z
  .object({
    saleId: text,
    dryRun: z.boolean(),
    counts: z.object({ written: count, failed: count, recorded: count, left: count }),
    more: z.boolean().meta({ description: 'there are more lost orders: repeat the request' }),
    silent: text.nullable().meta({ description: 'why the broker was not searched completely' }),
    orders: z.array(resolvedOrder),
  })
  .meta({ id: 'ResolvedSale' });

const run = z
  .object({
    runId: text,
    saleId: text.nullable(),
    applied: z.boolean(),
    actor: text,
    startedAt: time,
    finishedAt: time.nullable(),
    outcome: z.enum(RUN_OUTCOMES).nullable(),
    figures,
    findings: z.array(finding),
  })
  .meta({ id: 'ReconcileRun' });
export const runPage = z.object({ next: text.nullable(), runs: z.array(run) });

export type CompensationJob = BodyOf<typeof job>;
export type Finding = BodyOf<typeof finding>;
export type SaleReport = BodyOf<typeof saleReport>;
export type ResolvedSale = BodyOf<typeof resolvedSale>;
export type ReconcileRun = BodyOf<typeof run>;

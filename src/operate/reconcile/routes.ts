import { z } from 'zod';
import {
  jobPage,
  resolvedSale,
  retriedJob,
  runPage,
  saleReport,
  type CompensationJob as JobBody,
} from '../../contract/reconcile.js';
import { isoTime, isoTimeOrNull, limit, nextOf, queryWord, rowId, saleId, saleParams } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import { COMPENSATED_KINDS } from '../../core/sale-finding.js';
import { JOB_STATES, type CompensationJob } from '../../core/ports/compensation-repository.js';
import { type ReconcileRun } from '../../core/ports/reconcile-runs.js';
import { json, problem } from '../../http/answer.js';
import { operatorRoute, type RouteServices } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { RESOLVE_MODES, type ResolvedOrder } from './resolve-lost.js';
import type { SaleResult } from './sale-report.js';
import type { ReconcileServices, Resolves } from './services.js';

/** How long the answer waits for repairs before it shows their current state. The keeper finishes the rest. */
const APPLY_WAIT_MS = 10_000;

export const reconcileSale = operatorRoute({
  method: 'post',
  path: '/admin/v1/reconcile/sales/{saleId}',
  operationId: 'reconcileSale',
  summary: 'Compares Redis and MySQL for a sale. `apply` repairs the differences. Safe while the sale runs.',
  access: 'operator',
  params: saleParams,
  query: z.strictObject({ apply: queryWord(['true', 'false']).default('false') }),
  answers: { 200: { description: 'the findings and their compensation jobs', schema: saleReport } },
  problems: ['not_found', 'reconcile_running'],
  async handle({ params: { saleId }, query, userId: actor }, { reconcile }: ReconcileServices) {
    const results: SaleResult[] = [];
    const request = { saleId, apply: query.apply === 'true', waitMs: APPLY_WAIT_MS, actor };
    const { runId } = await reconcile.run(request, (result) => results.push(result));
    const [result] = results;
    if (result === undefined) return problem('internal'); // a run for one sale has one result
    switch (result.outcome) {
      case 'compared':
        return json(200, result.report.outcome, { runId, ...saleResultBody(result) });
      case 'taken':
        return problem('reconcile_running', { detail: `${result.owner} is reconciling this sale.` });
      case 'not_found':
        return problem(result.outcome);
      case 'failed':
        throw result.error;
      default:
        return assertNever(result);
    }
  },
});

/** Maximum number of lost orders per request. */
const RESOLVED_MAX = 500;
/** How long to wait for the repair of a closed sale, which a keeper does on request. */
const REBUILT_WAIT_MS = 10_000;

export const resolveLostOrders = operatorRoute({
  method: 'post',
  path: '/admin/v1/reconcile/sales/{saleId}/lost-orders',
  operationId: 'resolveLostOrders',
  summary:
    'After a restore of MySQL: writes the orders that only Redis still knows, or fails them and returns their units. Up to' +
    ' 500 per request; repeat it while `more` is true. Safe to repeat.',
  access: 'admin',
  params: saleParams,
  query: z.strictObject({ mode: queryWord(RESOLVE_MODES), dryRun: queryWord(['true', 'false']).default('false') }),
  answers: { 200: { description: 'the orders', schema: resolvedSale } },
  problems: ['not_found', 'reconcile_running', 'wrong_state', 'overloaded'],
  async handle({ params: { saleId }, query, userId: actor }, services: RouteServices & Resolves) {
    const leave = services.operatorPlaces.bulks.take();
    if (leave === null) return problem('overloaded', { detail: TOO_MANY });
    try {
      const dryRun = query.dryRun === 'true';
      const orders: ResolvedOrder[] = [];
      const request = { saleId, mode: query.mode, dryRun, max: RESOLVED_MAX, waitMs: REBUILT_WAIT_MS, actor };
      const result = await services.resolveLost(request, (order) => orders.push(order));
      switch (result.outcome) {
        case 'resolved': {
          const { counts, more, silent } = result;
          return json(200, 'resolved', { saleId, dryRun, counts, more, silent, orders });
        }
        case 'taken':
          return problem('reconcile_running', { detail: `${result.owner} is reconciling this sale.` });
        case 'not_loaded':
          return problem('wrong_state', { detail: 'A keeper is still rebuilding this sale in Redis. Try again.' });
        case 'not_found':
          return problem(result.outcome);
        default:
          return assertNever(result);
      }
    } finally {
      leave();
    }
  },
});

const TOO_MANY = 'This api already works through many orders or dead letters. Wait, or use another api.';

export const listReconcileRuns = operatorRoute({
  method: 'get',
  path: '/admin/v1/reconcile/runs',
  operationId: 'listReconcileRuns',
  summary: 'Lists reconcile runs, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  query: z.strictObject({ saleId: saleId.optional(), before: rowId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: runPage } },
  async handle({ query: { saleId, before: beforeId, limit: max } }, { reconcile }: ReconcileServices) {
    const runs = await reconcile.runs(withoutUndefined({ saleId, beforeId }), max);
    return json(200, 'found', { runs: runs.map(runBody), next: nextOf(runs, max, 'runId') });
  },
});

export const listCompensationJobs = operatorRoute({
  method: 'get',
  path: '/admin/v1/reconcile/jobs',
  operationId: 'listCompensationJobs',
  summary: 'Lists compensation jobs, oldest first. Pass `next` as `after` to get the next page.',
  access: 'viewer',
  query: z.strictObject({
    saleId: saleId.optional(),
    limit,
    state: queryWord(JOB_STATES).optional(),
    kind: queryWord(COMPENSATED_KINDS).optional(),
    after: rowId.optional(),
  }),
  answers: { 200: { description: 'a page', schema: jobPage } },
  async handle({ query: { after: afterId, limit: max, ...filter } }, { reconcile }: ReconcileServices) {
    const jobs = await reconcile.jobs(withoutUndefined(filter), { max, ...withoutUndefined({ afterId }) });
    return json(200, 'found', { jobs: jobs.map(jobBody), next: nextOf(jobs, max, 'jobId') });
  },
});

export const retryCompensationJob = operatorRoute({
  method: 'post',
  path: '/admin/v1/reconcile/jobs/{jobId}/retry',
  operationId: 'retryCompensationJob',
  summary: 'Retries a job with a fresh set of attempts. Safe to repeat.',
  access: 'operator',
  params: z.object({ jobId: rowId }),
  answers: { 200: { description: 'the job, pending or already compensated', schema: retriedJob } },
  problems: ['job_not_found', 'wrong_state'],
  async handle({ params: { jobId }, userId: actor }, { reconcile }: ReconcileServices) {
    const outcome = await reconcile.retry(jobId, actor);
    switch (outcome) {
      case 'retried':
      case 'compensated': {
        const found = await reconcile.findJob(jobId);
        if (found === null) return problem('job_not_found');
        return json(200, outcome, { outcome, job: jobBody(found) });
      }
      case 'not_retryable':
        return problem('wrong_state', { detail: 'Its purchase ended as a failed order, which is final.' });
      case 'not_found':
        return problem('job_not_found');
      default:
        return assertNever(outcome);
    }
  },
});

export const jobBody = ({ availableAtMs, createdAtMs, updatedAtMs, ...job }: CompensationJob): JobBody => ({
  ...job,
  availableAt: isoTime(availableAtMs),
  createdAt: isoTime(createdAtMs),
  updatedAt: isoTime(updatedAtMs),
});

export const runBody = ({ startedAtMs, finishedAtMs, ...run }: ReconcileRun): object => ({
  ...run,
  startedAt: isoTime(startedAtMs),
  finishedAt: isoTimeOrNull(finishedAtMs),
});

export function saleResultBody(result: SaleResult): object {
  switch (result.outcome) {
    case 'compared':
      return { ...result.report, jobs: result.jobs.map(jobBody) };
    case 'taken':
      return { outcome: result.outcome, saleId: result.saleId, owner: result.owner, until: isoTime(result.untilMs) };
    case 'not_found':
      return result;
    case 'failed':
      return { outcome: result.outcome, saleId: result.saleId, detail: result.error.message };
    default:
      return assertNever(result);
  }
}

import type { z } from 'zod';
import { assertNever } from '../../core/errors.js';
import { isSaleId } from '../../core/ids.js';
import type { JobRetried } from '../../recovery/reconcile/reconcile-admin.js';
import type { SaleResult } from '../../recovery/reconcile/sale-report.js';
import { jobBody, runBody, saleResultBody } from '../reconcile-bodies.js';
import type { HttpServices } from '../services.js';
import { asAdmin, type AdminHandler } from './admin-sales.js';
import { isJobId, JOBS_QUERY, readQuery, RUN_QUERY, RUNS_QUERY } from './reconcile-query.js';
import type { Exchange, Handler, Router } from './router.js';

/** How long repairs are followed before the answer shows them as they stand; the keeper goes on with the others. */
const APPLY_WAIT_MS = 10_000;

/** Reconcile, sale by sale, and the compensation jobs. */
export function mountReconcile(router: Router, services: HttpServices): void {
  const { reconcile } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/reconcile/sales/{saleId}', {
    post: admin(async (exchange, { userId: actor }) => {
      const saleId = exchange.param('saleId');
      if (!isSaleId(saleId)) return badRequest(exchange, 'The sale id must be a whole number.');
      const query = queryIn(exchange, RUN_QUERY);
      if (query === null) return;
      const results: SaleResult[] = [];
      const request = { saleId, apply: query.apply === 'true', waitMs: APPLY_WAIT_MS, actor };
      const { runId } = await reconcile.run(request, (result) => results.push(result));
      const [result] = results;
      if (result !== undefined) answerRun(exchange, runId, result);
    }),
  });

  router.mount('admin', '/admin/v1/reconcile/runs', {
    get: admin(async (exchange) => {
      const query = queryIn(exchange, RUNS_QUERY);
      if (query === null) return;
      const { saleId, limit } = query;
      const runs = await reconcile.runs(saleId === undefined ? {} : { saleId }, limit);
      exchange.replies.json(exchange.req, exchange.res, 200, 'found', { runs: runs.map(runBody) });
    }),
  });

  router.mount('admin', '/admin/v1/reconcile/jobs', {
    get: admin(async (exchange) => {
      const query = queryIn(exchange, JOBS_QUERY);
      if (query === null) return;
      const { saleId, state, kind, after, limit: max } = query;
      const filter = {
        ...(saleId === undefined ? {} : { saleId }),
        ...(state === undefined ? {} : { state }),
        ...(kind === undefined ? {} : { kind }),
      };
      const jobs = await reconcile.jobs(filter, { max, ...(after === undefined ? {} : { afterId: after }) });
      const next = jobs.length < max ? null : (jobs.at(-1)?.jobId ?? null);
      exchange.replies.json(exchange.req, exchange.res, 200, 'found', { jobs: jobs.map(jobBody), next });
    }),
  });

  router.mount('admin', '/admin/v1/reconcile/jobs/{jobId}/retry', {
    post: admin(async (exchange, { userId: actor }) => {
      const jobId = exchange.param('jobId');
      if (!isJobId(jobId)) return badRequest(exchange, 'The number of the job must be a whole number.');
      await answerRetry(exchange, jobId, await reconcile.retry(jobId, actor), services);
    }),
  });
}

function badRequest({ req, res, replies }: Exchange, detail: string): void {
  replies.problem(req, res, 'bad_request', { detail });
}

/** Answers 400 itself and returns null when the query is wrong. */
function queryIn<T>({ req, res, replies }: Exchange, schema: z.ZodType<T>): T | null {
  const read = readQuery(schema, { ...req.query });
  if ('query' in read) return read.query;
  const detail = `Wrong: ${read.map(({ field, message }) => `${field} ${message}`).join('; ')}.`;
  replies.problem(req, res, 'bad_request', { detail, errors: read });
  return null;
}

function answerRun({ req, res, replies }: Exchange, runId: string, result: SaleResult): void {
  switch (result.outcome) {
    case 'compared':
      return replies.json(req, res, 200, result.report.outcome, { runId, ...saleResultBody(result) });
    case 'taken':
      return replies.problem(req, res, 'reconcile_running', { detail: `${result.owner} reconciles this sale.` });
    case 'not_found':
      return replies.problem(req, res, result.outcome);
    case 'failed':
      throw result.error;
    default:
      return assertNever(result);
  }
}

async function answerRetry(
  { req, res, replies }: Exchange,
  jobId: string,
  outcome: JobRetried,
  { reconcile }: HttpServices,
): Promise<void> {
  switch (outcome) {
    case 'retried':
    case 'compensated': {
      const job = await reconcile.findJob(jobId);
      if (job === null) return replies.problem(req, res, 'job_not_found');
      return replies.json(req, res, 200, outcome, { outcome, job: jobBody(job) });
    }
    case 'not_retryable':
      return replies.problem(req, res, 'wrong_state', { detail: 'The row of its purchase is failed, for good.' });
    case 'not_found':
      return replies.problem(req, res, 'job_not_found');
    default:
      return assertNever(outcome);
  }
}

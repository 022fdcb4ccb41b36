import { COMPENSATED_KINDS } from '../../core/sale-finding.js';
import { JOB_STATES } from '../../core/ports/compensation-repository.js';
import {
  ADMIN,
  BEARER,
  filterBy,
  json,
  list,
  object,
  orNull,
  parameter,
  problems,
  ref,
  ROWS,
  SALE_ID,
  text,
} from './parts.js';

const JOB_ID = parameter('path', 'jobId', { type: 'string', pattern: '^[1-9][0-9]{0,17}$' });

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

export const reconcilePaths = {
  '/admin/v1/reconcile/sales/{saleId}': { post: reconcileSale },
  '/admin/v1/reconcile/runs': { get: reconcileRuns },
  '/admin/v1/reconcile/jobs': { get: compensationJobs },
  '/admin/v1/reconcile/jobs/{jobId}/retry': { post: retryJob },
};

import type { Route } from '../../http/route.js';
import { listCompensationJobs, listReconcileRuns, reconcileSale, retryCompensationJob } from './routes.js';
import type { ReconcileServices } from './services.js';

// The door for programs. The command line loads `commands.ts`, and only when it is named.

export const reconcileRoutes: readonly Route<ReconcileServices>[] = [
  reconcileSale,
  listReconcileRuns,
  listCompensationJobs,
  retryCompensationJob,
];
export { reconcileJobs } from './jobs.js';
export { openReconcile, type ReconcileServices } from './services.js';

import type { Route } from '../../http/route.js';
import {
  listCompensationJobs,
  listReconcileRuns,
  reconcileSale,
  resolveLostOrders,
  retryCompensationJob,
} from './routes.js';
import type { ReconcileServices, Resolves } from './services.js';

export const reconcileRoutes: readonly Route<ReconcileServices & Resolves>[] = [
  reconcileSale,
  resolveLostOrders,
  listReconcileRuns,
  listCompensationJobs,
  retryCompensationJob,
];
export { reconcileJobs } from './jobs.js';
export { openReconcile, openResolve, type ReconcileServices, type Resolves } from './services.js';

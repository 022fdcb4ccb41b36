import type { Route } from '../http/route.js';
import type { HttpServices } from '../http/services.js';
import { deadLetterRoutes, type DeadLetterServices } from '../operate/dead-letters/index.js';
import { refundRoutes, type RefundServices } from '../operate/refunds/index.js';
import { revocationRoutes, type RevocationServices } from '../operate/revocations/index.js';
import { readBreakers, ruleRoutes, switchRoutes, type RuleServices } from '../operate/rules/index.js';
import { createSale, listSales, readSale, reshardSale, saleMoves } from '../http/routes/admin-sales.js';
import { listAudit } from '../http/routes/audit.js';
import { exportOrders } from '../http/routes/export-orders.js';
import { findOrders, listMyOrders, readAnyOrder } from '../http/routes/find-orders.js';
import { followLive } from '../http/routes/live.js';
import { readMe } from '../http/routes/me.js';
import {
  listDiscardedHalves,
  listHalves,
  listMessages,
  listMqConsumers,
  listMqGroups,
  listMqProducers,
  listMqTopics,
  readMqStatus,
  resumeHalves,
} from '../http/routes/mq.js';
import { cancelOrder, payOrder, readOrder } from '../http/routes/orders.js';
import { paymentWebhook } from '../http/routes/payment-webhook.js';
import { healthz, metrics, openapiDocuments, readiness, readyz } from '../http/routes/probes.js';
import { profileCpu, profileHeap } from '../http/routes/profiles.js';
import { purchase } from '../http/routes/purchase.js';
import { purchaseEvents, purchaseStatus } from '../http/routes/purchase-status.js';
import { fetchPurchaseToken, joinQueue, readTicket } from '../http/routes/queue.js';
import {
  listCompensationJobs,
  listReconcileRuns,
  reconcileSale,
  retryCompensationJob,
} from '../http/routes/reconcile.js';
import { readBuckets, readSaleSeconds, repairSale } from '../http/routes/sale-live.js';
import { readSalePage } from '../http/routes/sale-page.js';
import { cancelSale, deleteSale, editSale } from '../http/routes/edit-sale.js';
import { readSalePlan } from '../http/routes/sale-plan.js';
import { tracePurchase } from '../http/routes/traces.js';

/** The services of every route. */
export type ApiServices = HttpServices & DeadLetterServices & RefundServices & RevocationServices & RuleServices;

/** Every route, in the order of the documents. `readyz` and `readiness` share an address on different listeners. */
export const ROUTES: readonly Route<ApiServices>[] = [
  purchase,
  purchaseStatus,
  purchaseEvents,
  fetchPurchaseToken,
  joinQueue,
  readTicket,
  readSalePage,
  listMyOrders,
  readOrder,
  payOrder,
  cancelOrder,
  paymentWebhook,
  readMe,
  followLive,
  createSale,
  listSales,
  readSalePlan,
  readSale,
  editSale,
  deleteSale,
  cancelSale,
  ...saleMoves,
  reshardSale,
  readSaleSeconds,
  readBuckets,
  repairSale,
  readBreakers,
  findOrders,
  exportOrders,
  readAnyOrder,
  ...deadLetterRoutes,
  reconcileSale,
  listReconcileRuns,
  listCompensationJobs,
  retryCompensationJob,
  ...refundRoutes,
  ...ruleRoutes,
  ...revocationRoutes,
  ...switchRoutes,
  listAudit,
  tracePurchase,
  readMqStatus,
  listMqGroups,
  listMqTopics,
  listHalves,
  listDiscardedHalves,
  resumeHalves,
  listMqProducers,
  listMqConsumers,
  listMessages,
  profileCpu,
  profileHeap,
  healthz,
  readyz,
  readiness,
  metrics,
  ...openapiDocuments,
];

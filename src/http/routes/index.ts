import type { Listener, Route } from '../route.js';
import { createSale, listSales, readSale, reshardSale, saleMoves } from './admin-sales.js';
import { listAudit } from './audit.js';
import { readBreakers } from './breakers.js';
import { workOnDeadLetters } from './dead-letter-bulk.js';
import { discardDeadLetter, listDeadLetters, readDeadLetter, replayDeadLetter } from './dead-letters.js';
import { exportDeadLetters } from './export-dead-letters.js';
import { exportOrders } from './export-orders.js';
import { findOrders, listMyOrders, readAnyOrder } from './find-orders.js';
import { followLive } from './live.js';
import { readMe } from './me.js';
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
} from './mq.js';
import { cancelOrder, payOrder, readOrder } from './orders.js';
import { closePaymentCase, listPaymentCases } from './payment-cases.js';
import { paymentWebhook } from './payment-webhook.js';
import { healthz, metrics, openapiDocuments, readiness, readyz } from './probes.js';
import { profileCpu, profileHeap } from './profiles.js';
import { purchase } from './purchase.js';
import { purchaseEvents, purchaseStatus } from './purchase-status.js';
import { fetchPurchaseToken, joinQueue, readTicket } from './queue.js';
import { listCompensationJobs, listReconcileRuns, reconcileSale, retryCompensationJob } from './reconcile.js';
import { listRefunds, takeOnRefund } from './refunds.js';
import { addRevocation, listRevocations } from './revocations.js';
import { checkRules, listRules, publishRules, readOldRules, readRules, readRulesStatus } from './rules.js';
import { readBuckets, readSaleSeconds, repairSale } from './sale-live.js';
import { readSalePage } from './sale-page.js';
import { readSwitches, setSwitch } from './switches.js';
import { cancelSale, deleteSale, editSale } from './edit-sale.js';
import { readSalePlan } from './sale-plan.js';
import { tracePurchase } from './traces.js';

/** Every route, in the order of the documents. `readyz` and `readiness` share an address on different listeners. */
export const ROUTES: readonly Route[] = [
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
  listDeadLetters,
  exportDeadLetters,
  workOnDeadLetters,
  readDeadLetter,
  replayDeadLetter,
  discardDeadLetter,
  reconcileSale,
  listReconcileRuns,
  listCompensationJobs,
  retryCompensationJob,
  listRefunds,
  takeOnRefund,
  listPaymentCases,
  closePaymentCase,
  readRules,
  readRulesStatus,
  publishRules,
  checkRules,
  listRules,
  readOldRules,
  listRevocations,
  addRevocation,
  readSwitches,
  setSwitch,
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

/** Returns the routes of a listener. */
export const routesOf = (listener: Listener): readonly Route[] =>
  ROUTES.filter(({ asks }) => asks.listeners.includes(listener));

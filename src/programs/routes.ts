import type { Route } from '../http/route.js';
import type { HttpServices } from '../http/services.js';
import { couponRoutes, type CouponServices } from '../operate/coupons/index.js';
import { brokerRoutes, type BrokerServices } from '../operate/broker/index.js';
import { deadLetterRoutes, type DeadLetterServices } from '../operate/dead-letters/index.js';
import { findingRoutes, type FindingServices } from '../operate/findings/index.js';
import { followLive, readSaleSeconds, type LiveServices } from '../operate/live/index.js';
import { listAudit } from '../operate/audit/index.js';
import { reconcileRoutes, type ReconcileServices, type Resolves } from '../operate/reconcile/index.js';
import { tracePurchase, type TraceServices } from '../operate/trace/index.js';
import { orderRoutes, type OrderServices } from '../operate/orders/index.js';
import { bucketRoutes, saleRoutes, type SaleServices } from '../operate/sales/index.js';
import { refundRoutes, type RefundServices } from '../operate/refunds/index.js';
import { revocationRoutes, type RevocationServices } from '../operate/revocations/index.js';
import { readBreakers, roomRoutes, ruleRoutes, switchRoutes, type RuleServices } from '../operate/rules/index.js';
import { webhookRoutes, type WebhookServices } from '../operate/webhooks/index.js';
import { readMe } from '../http/routes/me.js';
import { listMyCoupons } from '../http/routes/coupons.js';
import { listMyNotifications, readMyNotifications } from '../http/routes/notifications.js';
import { cancelOrder, listMyOrders, payOrder, readOrder } from '../http/routes/orders.js';
import { paymentWebhook } from '../http/routes/payment-webhook.js';
import { healthz, metrics, openapiDocuments, readiness, readyz } from '../http/routes/probes.js';
import { profileCpu, profileHeap } from '../http/routes/profiles.js';
import { purchase } from '../http/routes/purchase.js';
import { purchaseEvents, purchaseStatus } from '../http/routes/purchase-status.js';
import { fetchPurchaseToken, joinQueue, readTicket } from '../http/routes/queue.js';
import { readSalePage } from '../http/routes/sale-page.js';

export type ApiServices = HttpServices &
  BrokerServices &
  CouponServices &
  DeadLetterServices &
  LiveServices &
  OrderServices &
  ReconcileServices &
  Resolves &
  RefundServices &
  RevocationServices &
  RuleServices &
  SaleServices &
  TraceServices &
  WebhookServices &
  FindingServices;

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
  listMyCoupons,
  listMyNotifications,
  readMyNotifications,
  readOrder,
  payOrder,
  cancelOrder,
  paymentWebhook,
  readMe,
  followLive,
  ...saleRoutes,
  readSaleSeconds,
  ...bucketRoutes,
  readBreakers,
  ...orderRoutes,
  ...couponRoutes,
  ...deadLetterRoutes,
  ...reconcileRoutes,
  ...refundRoutes,
  ...findingRoutes,
  ...ruleRoutes,
  ...webhookRoutes,
  ...revocationRoutes,
  ...switchRoutes,
  ...roomRoutes,
  listAudit,
  tracePurchase,
  ...brokerRoutes,
  profileCpu,
  profileHeap,
  healthz,
  readyz,
  readiness,
  metrics,
  ...openapiDocuments,
];

import type { ShownOrder } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import { Places } from '../core/places.js';
import type { CancelAnswer, PayAnswer, PayRequest } from '../orders/buyer-orders.js';
import type { ReadEndpoint, DegradedReads } from '../admission/degrade/degraded-reads.js';
import type { Degrade } from '../admission/degrade/degrade.js';
import type { Admission } from '../admission/admission.js';
import type { SharedBreakers } from '../admission/breaker/shared-breakers.js';
import type { AddressLimit } from '../admission/limits/address-limit.js';
import type { LimitedAddress } from '../admission/limits/limited-addresses.js';
import type { QueuePasses, WaitingRooms } from '../admission/queue/waiting-rooms.js';
import type { UnpaidPause } from '../admission/orders/unpaid-pause.js';
import type { PurchaseTokens } from '../admission/sign/purchase-tokens.js';
import type { RequestSignatures } from '../admission/sign/request-signatures.js';
import type { AuditLog } from '../core/ports/audit-log.js';
import type { Clock } from '../core/ports/clock.js';
import type { Coupons } from '../core/ports/coupons.js';
import type { Log } from '../core/ports/log.js';
import type { StoredNotifications } from '../core/ports/notifications.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { OrderSearch } from '../core/ports/order-search.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PaymentCases } from '../core/ports/payment-cases.js';
import type { PaymentReport } from '../core/ports/payment-provider.js';
import type { OrderRefunds } from '../core/ports/order-refunds.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';
import type { Tracing } from '../core/ports/tracing.js';
import type { PurchaseGate } from '../purchase/gate.js';
import type { FollowPurchase } from '../purchase/follow-purchase.js';
import type { PurchaseQuery } from '../purchase/get-purchase.js';
import type { GetSaleAnswer } from '../sales/get-sale.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';
import type { PriceTerms } from '../sales/new-sale.js';
import type { SaleAdmin } from '../sales/sale-admin.js';
import type { AccessLog } from './access-log.js';
import type { RequestAuthenticator } from './auth.js';
import type { ClientAddress } from './client-address.js';
import type { Cors } from './cors.js';
import type { StreamTimes } from './event-stream.js';
import type { HttpMetrics } from './metrics.js';
import type { MetricsPage } from './metrics-page.js';
import type { Pages } from './pages.js';
import type { SaleAnswers } from './sale-answers.js';
import type { WebhookVerifier } from './webhook-signature.js';

/** Whether this process should get traffic, with the state of each dependency. */
export interface ReadyReport {
  readonly ready: boolean;
  readonly dependencies: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}

/** Limits how much work of operators one api does at the same time. */
export const newOperatorPlaces = () => ({
  /** Each export occupies a connection to MySQL. */
  exports: new Places({ max: 2 }),
  /** Each bulk replay or discard occupies the workers. */
  bulks: new Places({ max: 1 }),
  /** A first search for an id may read much of Redis. Two places per operator allow a second search meanwhile. */
  traces: new Places({ max: 4, perUserMax: 2 }),
});

/**
 * Everything that the HTTP layer needs. `src/programs/api-services.ts` provides it. The folder of a subject declares
 * the services of that subject.
 */
export interface HttpServices {
  /** The cell to which this server belongs. 0 if there are no cells. */
  readonly cell: number;
  readonly auth: RequestAuthenticator;
  /** The admission layers. */
  readonly admission: Admission;
  readonly addressOf: ClientAddress;
  /** The address limit that applies without rules. */
  readonly addressLimit: Pick<AddressLimit, 'isOn' | 'refuses'>;
  /** Returns the keys under which an address is counted: itself, and for IPv6 its network. Empty if it is exempt. */
  readonly limitedAddress: LimitedAddress;
  /** Signatures of buyers' requests about a sale. */
  readonly signatures: RequestSignatures;
  readonly passes: QueuePasses;
  readonly tokens: PurchaseTokens;
  readonly unpaidPause: UnpaidPause;
  readonly rooms: WaitingRooms;
  readonly snapshots: SaleSnapshots;
  readonly clock: Clock;
  /** Decides how complete the answer to a request is. Handlers ask it for reads and for changes of orders. */
  readonly degrade: Degrade;
  /** Returns the answer that `degrade` chose. @throws OperationalError of the source */
  readonly reads: Readonly<Record<ReadEndpoint, DegradedReads>>;
  readonly gate: Pick<PurchaseGate, 'countAttempt' | 'refuseEarly' | 'enter'>;
  /** @throws OperationalError */
  readonly getPurchase: { get(query: PurchaseQuery): Promise<PurchaseStatus> };
  /** @throws OperationalError */
  readonly followPurchase: FollowPurchase;
  readonly streamTimes: StreamTimes;
  /** @throws OperationalError */
  readonly getSale: { get(saleId: string, isExact: boolean): Promise<GetSaleAnswer> };
  /**
   * Returns an order of this buyer. Null if the order does not exist or belongs to another buyer.
   * @throws OperationalError mysql
   */
  readonly getOrder: (orderId: string, userId: string) => Promise<ShownOrder | null>;
  /** Finds an order of any buyer. @throws OperationalError mysql */
  readonly findOrder: OrderRepository['findOrder'];
  /** @throws OperationalError mysql */
  readonly orderSearch: OrderSearch;
  /** @throws OperationalError mysql */
  readonly notifications: Pick<StoredNotifications, 'list' | 'markRead'>;
  /** Returns the refunds of an order, finished or not. @throws OperationalError mysql */
  readonly refundsOf: RefundRepository['refundsOf'];
  readonly coupons: Coupons;
  /** @throws OperationalError mysql */
  readonly payOrder: (request: PayRequest) => Promise<PayAnswer>;
  /** @throws OperationalError mysql */
  readonly cancelOrder: (orderId: string, userId: string) => Promise<CancelAnswer>;
  /** Receives reports of the payment provider. Null if there is no secret to verify its messages with. */
  readonly webhook: {
    readonly verifier: WebhookVerifier;
    /** The signature header, in lower case, and the reader of a signed body. */
    readonly header: string;
    readonly read: (body: string) => PaymentReport;
    /** The accepted payment mode. Payments of the other mode are refused. */
    readonly mode: 'live' | 'test';
    readonly pay: OrderTransitions['pay'];
    /** Asks the provider for the results of the charges of an order. @throws OperationalError mysql */
    readonly resolve: (orderId: string) => Promise<void>;
    readonly isRefund: RefundRepository['has'];
    readonly cases: PaymentCases;
    /** Moves the orders whose money went back or is disputed. @throws OperationalError mysql */
    readonly money: Pick<OrderRefunds, 'refundedElsewhere' | 'cameBack' | 'disputed'>;
  } | null;
  readonly prices: PriceTerms;
  readonly sales: SaleAdmin;
  readonly breakers: SharedBreakers;
  readonly operatorPlaces: ReturnType<typeof newOperatorPlaces>;
  readonly audit: AuditLog;
  /** Profiles this process. Null if another profile is running. */
  readonly profiler: {
    profile(kind: 'cpu' | 'heap', forMs: number, signal: AbortSignal): Promise<string | null>;
  };
  readonly ready: () => Promise<ReadyReport>;
  /** Readiness as a yes or no. The answer may be a moment old, so that frequent requests cost nothing. */
  readonly isReady: () => Promise<boolean>;
  /** For pages of other origins. Null if no other origin is allowed. */
  readonly cors: Cors | null;
  /** The page files of each listener. */
  readonly pages: Readonly<Record<'buyers' | 'operators', Pages>>;
  readonly metricsPage: MetricsPage;
  readonly metrics: HttpMetrics;
  readonly saleAnswers: SaleAnswers;
  readonly tracing: Tracing;
  /** Which trace ids are stored with purchases: every id that a caller sends, only ids of recorded traces, or none. */
  readonly traceIdsStored: 'all' | 'sampled' | 'none';
  /** Null if the access log is off. */
  readonly accessLog: AccessLog | null;
  readonly log: Log;
  /** Receives every logged and answered error that is neither a refusal nor a fault of a dependency. */
  readonly onBug: (error: unknown) => void;
}

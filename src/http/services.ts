import type { ShownOrder } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import { Places } from '../core/places.js';
import type { Sale } from '../core/sale.js';
import type { Resharded } from '../core/sale-repair.js';
import type { CancelAnswer, PayAnswer, PayRequest } from '../orders/buyer-orders.js';
import type { ReadEndpoint, DegradedReads } from '../admission/degrade/degraded-reads.js';
import type { Degrade } from '../admission/degrade/degrade.js';
import type { SwitchAdmin } from '../admission/degrade/switches.js';
import type { Admission } from '../admission/admission.js';
import type { SharedBreakers } from '../admission/breaker/shared-breakers.js';
import type { AddressLimit } from '../admission/limits/address-limit.js';
import type { LimitedAddress } from '../admission/limits/limited-addresses.js';
import type { QueuePasses, WaitingRooms } from '../admission/queue/waiting-rooms.js';
import type { RuleAdmin } from '../admission/rules/rule-admin.js';
import type { UnpaidPause } from '../admission/orders/unpaid-pause.js';
import type { PurchaseTokens } from '../admission/sign/purchase-tokens.js';
import type { RequestSignatures } from '../admission/sign/request-signatures.js';
import type { DeadLetterAdmin } from '../recovery/dead-letters/dead-letter-admin.js';
import type { AnswerHistory } from '../core/ports/answer-history.js';
import type { AuditLog } from '../core/ports/audit-log.js';
import type { Clock } from '../core/ports/clock.js';
import type { LandedOrders } from '../core/ports/landed-orders.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository } from '../core/ports/order-repository.js';
import type { RuleReports } from '../core/ports/rules.js';
import type { OrderSearch } from '../core/ports/order-search.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { PaymentCases } from '../core/ports/payment-cases.js';
import type { PaymentReport } from '../core/ports/payment-provider.js';
import type { RefundRepository } from '../core/ports/refund-repository.js';
import type { RevocationRepository } from '../core/ports/revocations.js';
import type { Tracing } from '../core/ports/tracing.js';
import type { PurchaseGate } from '../purchase/gate.js';
import type { FollowPurchase } from '../purchase/follow-purchase.js';
import type { PurchaseQuery } from '../purchase/get-purchase.js';
import type { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import type { OrderedRepair } from '../recovery/repair/repair-jobs.js';
import type { GetSaleAnswer } from '../sales/get-sale.js';
import type { SaleSnapshots } from '../sales/sale-snapshots.js';
import type { PriceTerms } from '../sales/new-sale.js';
import type { SaleEditor } from '../sales/edit-sale.js';
import type { SaleAdmin } from '../sales/sale-admin.js';
import type { SaleBucket } from '../sales/sale-buckets.js';
import type { PlannedSale } from '../sales/schedule/plan-sales.js';
import type { TracePurchase } from '../recovery/trace/trace-purchase.js';
import type { AccessLog } from './access-log.js';
import type { RequestAuthenticator } from './auth.js';
import type { BrokerViews } from './broker-views.js';
import type { ClientAddress } from './client-address.js';
import type { Cors } from './cors.js';
import type { StreamTimes } from './event-stream.js';
import type { LiveSnapshots } from './live-snapshots.js';
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

/** What operators may have under way at one api at the same time. */
export const newOperatorPlaces = () => ({
  /** Each keeps a connection to MySQL busy. */
  exports: new Places({ max: 2 }),
  /** Each keeps the workers busy. */
  bulks: new Places({ max: 1 }),
  /** The first look for an id may read much of Redis. Who looks for another one meanwhile needs a second place. */
  traces: new Places({ max: 4, perUserMax: 2 }),
});

/** All that the HTTP layer needs; `src/programs/api-services.ts` fills it. */
export interface HttpServices {
  readonly auth: RequestAuthenticator;
  /** The admission layers. */
  readonly admission: Pick<Admission, 'isOn' | 'anonymous' | 'buyer' | 'operator'>;
  readonly addressOf: ClientAddress;
  /** The limit that is on without rules. */
  readonly addressLimit: Pick<AddressLimit, 'isOn' | 'refuses'>;
  /** What an address counts as where buyers at one address share places; empty: it is not counted. */
  readonly limitedAddress: LimitedAddress;
  /** Signatures of requests that buyers send about a sale. */
  readonly signatures: Pick<RequestSignatures, 'areNeeded' | 'begin' | 'finish'>;
  readonly passes: Pick<QueuePasses, 'check'>;
  readonly tokens: Pick<PurchaseTokens, 'areIssued' | 'begin' | 'open' | 'redeem' | 'issue'>;
  readonly unpaidPause: Pick<UnpaidPause, 'check'>;
  readonly rooms: Pick<WaitingRooms, 'isFor' | 'join' | 'read' | 'end'>;
  readonly snapshots: Pick<SaleSnapshots, 'get' | 'peek'>;
  readonly clock: Clock;
  /** Decides how much of an answer a request gets; asked for reads and for changes of orders. */
  readonly degrade: Pick<Degrade, 'isOn' | 'rulingOf'>;
  /** Give the answer that `degrade` decided on. @throws OperationalError of the source */
  readonly reads: Readonly<Record<ReadEndpoint, Pick<DegradedReads, 'serve'>>>;
  readonly gate: Pick<PurchaseGate, 'countAttempt' | 'refuseEarly' | 'enter'>;
  /** @throws OperationalError */
  readonly getPurchase: { get(query: PurchaseQuery): Promise<PurchaseStatus> };
  /** @throws OperationalError */
  readonly followPurchase: Pick<FollowPurchase, 'open'>;
  readonly streamTimes: StreamTimes;
  /** @throws OperationalError */
  readonly getSale: { get(saleId: string): Promise<GetSaleAnswer> };
  /**
   * An order of this buyer; null if it does not exist or belongs to another buyer.
   * @throws OperationalError mysql
   */
  readonly getOrder: (orderId: string, userId: string) => Promise<ShownOrder | null>;
  /** Of any buyer. @throws OperationalError mysql */
  readonly findOrder: OrderRepository['findOrder'];
  /** @throws OperationalError mysql */
  readonly orderSearch: OrderSearch;
  /** The refunds of an order, done or not. @throws OperationalError mysql */
  readonly refundsOf: RefundRepository['refundsOf'];
  /** @throws OperationalError mysql */
  readonly payOrder: (request: PayRequest) => Promise<PayAnswer>;
  /** @throws OperationalError mysql */
  readonly cancelOrder: (orderId: string, userId: string) => Promise<CancelAnswer>;
  /** Where the payment provider reports payments; null without a secret to check its messages with. */
  readonly webhook: {
    readonly verifier: WebhookVerifier;
    /** The header with the signature, in small letters, and what a signed body says. */
    readonly header: string;
    readonly read: (body: string) => PaymentReport;
    /** Payments of the other kind are refused. */
    readonly mode: 'live' | 'test';
    readonly pay: OrderTransitions['pay'];
    /** Asks the provider what became of the charges of an order. @throws OperationalError mysql */
    readonly resolve: (orderId: string) => Promise<void>;
    readonly isRefund: RefundRepository['has'];
    readonly cases: Pick<PaymentCases, 'note' | 'settle' | 'orderOf'>;
  } | null;
  readonly prices: PriceTerms;
  readonly sales: Pick<SaleAdmin, 'create' | 'show' | 'list' | 'warm' | 'open' | 'pause' | 'close'>;
  readonly editor: Pick<SaleEditor, 'edit' | 'cancel' | 'remove'>;
  /** The sales that open within this time, or have opened, with what they lack. @throws OperationalError */
  readonly plan: (withinMs: number) => Promise<readonly PlannedSale[]>;
  /**
   * Splits a sale into more buckets while it sells. @throws OperationalError; the sale may stay locked until the keeper
   * has repaired it
   */
  readonly reshard: (saleId: string, order: { readonly actor: string; readonly buckets: number }) => Promise<Resharded>;
  /** Rebuilds a sale in Redis from MySQL. @throws OperationalError; it stays locked until the keeper has repaired it */
  readonly repair: (
    saleId: string,
    order: { readonly actor: string },
    options: { readonly force: boolean },
  ) => Promise<OrderedRepair>;
  /** @throws OperationalError redis */
  readonly bucketsOf: (sale: Sale) => Promise<readonly SaleBucket[]>;
  /** @throws OperationalError mysql, redis */
  readonly saleSeconds: {
    readonly landed: Pick<LandedOrders, 'bySecond'>;
    readonly answers: Pick<AnswerHistory, 'read'>;
    /** How long answers are remembered, ms. */
    readonly keptMs: number;
  };
  /** What open consoles show. */
  readonly live: Pick<LiveSnapshots, 'isFull' | 'follow'>;
  readonly breakers: Pick<SharedBreakers, 'mode' | 'standings'>;
  readonly operatorPlaces: ReturnType<typeof newOperatorPlaces>;
  /** What RocketMQ holds; null: no name server is known. */
  readonly mq: BrokerViews | null;
  readonly deadLetters: Pick<
    DeadLetterAdmin,
    'list' | 'count' | 'matching' | 'parkedMatching' | 'find' | 'ordersOf' | 'replay' | 'discard' | 'workThrough'
  >;
  readonly reconcile: Pick<ReconcileAdmin, 'run' | 'runs' | 'jobs' | 'findJob' | 'retry'>;
  /** Money that a person has to look after. @throws OperationalError mysql */
  readonly paymentCases: Pick<PaymentCases, 'list' | 'close'>;
  /** Lists refunds, and takes one on to be paid by hand. @throws OperationalError mysql */
  readonly refunds: Pick<RefundRepository, 'list' | 'takeOn'>;
  /** The rules of admission. @throws OperationalError mysql */
  readonly rules: Pick<RuleAdmin, 'show' | 'find' | 'check' | 'publish' | 'history'>;
  /** Which version each api follows. @throws OperationalError redis */
  readonly ruleReports: Pick<RuleReports, 'live'>;
  /** The switches of degradation, which are part of those rules. @throws OperationalError mysql */
  readonly switches: Pick<SwitchAdmin, 'show' | 'set'>;
  /** Revoked tokens. @throws OperationalError mysql */
  readonly revocations: Pick<RevocationRepository, 'add' | 'newest'>;
  readonly audit: Pick<AuditLog, 'list' | 'append'>;
  /** Profiles of this process; null: another one is under way. */
  readonly profiler: {
    profile(kind: 'cpu' | 'heap', forMs: number, signal: AbortSignal): Promise<string | null>;
  };
  readonly trace: Pick<TracePurchase, 'trace'>;
  readonly ready: () => Promise<ReadyReport>;
  /** The same in one word, for whoever asks; the answer may be a moment old, so that asking often costs nothing. */
  readonly isReady: () => Promise<boolean>;
  /** For pages of other origins; null: there are none. */
  readonly cors: Pick<Cors, 'preflight' | 'mark'> | null;
  /** What each listener serves as files. */
  readonly pages: Readonly<Record<'buyers' | 'operators', Pages>>;
  readonly metricsPage: Pick<MetricsPage, 'isFor' | 'read'>;
  readonly metrics: HttpMetrics;
  readonly saleAnswers: Pick<SaleAnswers, 'count'>;
  readonly tracing: Pick<Tracing, 'startRequest'>;
  /** Which trace ids are stored with purchases: all that callers bring, those of recorded traces, or none. */
  readonly traceIdsStored: 'all' | 'sampled' | 'none';
  /** Null: it is off. */
  readonly accessLog: Pick<AccessLog, 'note'> | null;
  readonly log: Log;
  /** Called for every error that is neither a refusal nor a fault of a dependency, after it was logged and answered. */
  readonly onBug: (error: unknown) => void;
}

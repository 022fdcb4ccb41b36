import type { Order } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import type { Scattered } from '../core/scattered.js';
import type { CancelAnswer } from '../orders/cancel.js';
import type { PayAnswer, PayRequest } from '../orders/pay.js';
import type { ReadEndpoint } from '../admission/degrade/answers.js';
import type { Degrade } from '../admission/degrade/degrade.js';
import type { DegradedReads } from '../admission/degrade/degraded-reads.js';
import type { SwitchDesk } from '../admission/degrade/switch-desk.js';
import type { Entry } from '../admission/entry.js';
import type { QueuePasses } from '../admission/queue/queue-passes.js';
import type { WaitingRooms } from '../admission/queue/waiting-rooms.js';
import type { RuleDesk } from '../admission/rules/rule-desk.js';
import type { PurchaseTokens } from '../admission/sign/purchase-tokens.js';
import type { RequestSignatures } from '../admission/sign/request-signatures.js';
import type { DeadLetterDesk } from '../recovery/dead-letters/dead-letter-desk.js';
import type { AuditLog } from '../core/ports/audit-log.js';
import type { Clock } from '../core/ports/clock.js';
import type { HttpMeters } from '../core/ports/http-meters.js';
import type { Log } from '../core/ports/log.js';
import type { OrderMoves } from '../core/ports/order-moves.js';
import type { RefundBook } from '../core/ports/refund-book.js';
import type { PurchaseGate } from '../purchase/gate.js';
import type { FollowPurchase } from '../purchase/follow-purchase.js';
import type { PurchaseQuery } from '../purchase/get-purchase.js';
import type { ReconcileDesk } from '../recovery/reconcile/reconcile-desk.js';
import type { GetSaleAnswer } from '../sales/get-sale.js';
import type { SaleCards } from '../sales/sale-cards.js';
import type { SaleDesk } from '../sales/sale-desk.js';
import type { TracePurchase } from '../recovery/trace/trace-purchase.js';
import type { Authenticator } from './auth.js';
import type { ClientAddress } from './client-address.js';
import type { StreamTimes } from './event-stream.js';
import type { WebhookVerifier } from './webhook-signature.js';

/** Whether this process should get traffic, and what speaks against it. */
export interface ReadyReport {
  readonly ready: boolean;
  readonly dependencies: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}

/** All that the HTTP side needs; src/app fills it. */
export interface HttpServices {
  readonly auth: Authenticator;
  /** Who may come in; asked for the endpoints of buyers only. */
  readonly entry: Pick<Entry, 'isOn' | 'stranger' | 'buyer'>;
  readonly addressOf: ClientAddress;
  /** Of what buyers ask about a sale. */
  readonly signatures: Pick<RequestSignatures, 'begin' | 'finish'>;
  readonly passes: Pick<QueuePasses, 'check'>;
  readonly tokens: Pick<PurchaseTokens, 'check' | 'hand'>;
  readonly rooms: Pick<WaitingRooms, 'join' | 'look' | 'end'>;
  readonly cards: Pick<SaleCards, 'get'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** How much of an answer a request gets; asked for reads and for changes of orders. */
  readonly degrade: Pick<Degrade, 'isOn' | 'rulingOf'>;
  /** Give what was ruled. @throws OperationalError of the source */
  readonly reads: Readonly<Record<ReadEndpoint, Pick<DegradedReads, 'serve'>>>;
  readonly gate: Pick<PurchaseGate, 'refuseEarly' | 'enter'>;
  /** @throws OperationalError */
  readonly getPurchase: { get(query: PurchaseQuery): Promise<PurchaseStatus> };
  /** @throws OperationalError */
  readonly followPurchase: Pick<FollowPurchase, 'open'>;
  readonly streamTimes: StreamTimes;
  /** @throws OperationalError */
  readonly getSale: { get(saleId: string): Promise<GetSaleAnswer> };
  /**
   * An order of this buyer; null for one that does not exist and for one of somebody else.
   * @throws OperationalError mysql
   */
  readonly getOrder: (orderId: string, userId: string) => Promise<Order | null>;
  /** Money of an order that is or was owed back. @throws OperationalError mysql */
  readonly refundsOf: RefundBook['refundsOf'];
  /** @throws OperationalError mysql */
  readonly payOrder: (request: PayRequest) => Promise<PayAnswer>;
  /** @throws OperationalError mysql */
  readonly cancelOrder: (orderId: string, userId: string) => Promise<CancelAnswer>;
  /** Where a provider tells of payments; null without a secret to check them with. */
  readonly webhook: { readonly verifier: WebhookVerifier; readonly tell: OrderMoves['pay'] } | null;
  readonly desk: Pick<SaleDesk, 'create' | 'show' | 'list' | 'warm' | 'open' | 'pause' | 'close'>;
  /** Splits a sale into more buckets while it sells. @throws OperationalError; it may be shut until the keeper has repaired it */
  readonly scatter: (saleId: string, order: { readonly actor: string; readonly buckets: number }) => Promise<Scattered>;
  readonly letters: Pick<DeadLetterDesk, 'list' | 'find' | 'replay' | 'discard'>;
  readonly reconcile: Pick<ReconcileDesk, 'run' | 'runs' | 'jobs' | 'findJob' | 'retry'>;
  /** What operators do with money that is owed back. @throws OperationalError mysql */
  readonly refunds: Pick<RefundBook, 'list' | 'takeOn'>;
  /** The rules of the entry. @throws OperationalError mysql */
  readonly rules: Pick<RuleDesk, 'show' | 'find' | 'check' | 'publish' | 'history'>;
  /** The switches of the degradation, which are part of those rules. @throws OperationalError mysql */
  readonly switches: Pick<SwitchDesk, 'show' | 'set'>;
  readonly audit: AuditLog;
  readonly trace: Pick<TracePurchase, 'trace'>;
  readonly ready: () => Promise<ReadyReport>;
  /** Prometheus text format. */
  readonly metrics: () => Promise<string>;
  readonly meters: HttpMeters;
  readonly log: Log;
  /** Told of every error that is neither a refusal nor a fault of a dependency, after it was logged and answered. */
  readonly onBug: (error: unknown) => void;
}

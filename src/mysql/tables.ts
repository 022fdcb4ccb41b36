import type { Tables } from 'knex/types/tables.js';
import type { OrderEventType } from '../core/order-event.js';
import { stateOf, type FailureReason, type MoneyState, type Order, type PurchaseState } from '../core/order.js';
import type { StoredCouponState } from '../core/coupon.js';
import type { Sale, SaleState } from '../core/sale.js';
import type { CompensatedKind } from '../core/sale-finding.js';
import type { JobState } from '../core/ports/compensation-repository.js';
import type { DeadLetterReason, DeadLetterState } from '../core/ports/dead-letters.js';
import type { OutboxKind } from '../core/ports/outbox.js';
import type { AttemptEnd } from '../core/ports/payment-attempts.js';
import type { CaseKind, CaseState } from '../core/ports/payment-cases.js';
import type { RunOutcome } from '../core/ports/reconcile-runs.js';
import type { EditState } from '../core/ports/sale-edits.js';
import type { OrderRefundState } from '../core/ports/order-refunds.js';
import type { RefundState } from '../core/ports/refund-repository.js';
import type { WitnessKind, WitnessState } from '../core/ports/witness.js';
import type { StoredKind } from './stored-kind.js';

/**
 * Rows as the driver returns them: BIGINT as a decimal string (ids exceed 2^53), other numbers as numbers, DATETIME as
 * a Date in UTC. Columns that no program reads are missing, so that the compiler refuses them.
 */
declare module 'knex/types/tables.js' {
  interface Tables {
    audit_log: {
      readonly id: string;
      readonly actor: string;
      readonly action: string;
      readonly subject: string;
      readonly before_json: string | null;
      readonly after_json: string | null;
      readonly created_at: Date;
    };
    compensation_jobs: CompensationJobRow;
    coupon_codes: CouponCodeRow;
    coupons: CouponRow;
    coupons_archive: CouponRow;
    dead_letters: DeadLetterRow;
    entry_rules: {
      readonly version: number;
      readonly rules_json: string;
      readonly canary_json: string | null;
      readonly actor: string;
      readonly created_at: Date;
    };
    job_leases: { readonly job: string; readonly owner: string; readonly leased_until: Date };
    notifications: {
      readonly id: string;
      readonly user_id: string;
      readonly order_id: string;
      readonly sale_id: string;
      readonly event_id: string;
      readonly type: OrderEventType;
      readonly happened_at: Date;
      readonly read_at: Date | null;
      readonly created_at: Date;
    };
    order_metadata: OrderMetadataRow;
    order_refunds: OrderRefundRow & OfSale;
    order_metadata_archive: OrderMetadataRow;
    order_ranges: OrderRangeRow;
    order_traces: OrderTraceRow;
    order_traces_archive: OrderTraceRow;
    orders: OrderRow;
    orders_archive: OrderRow;
    outbox: OutboxTableRow & OfSale;
    payment_attempts: {
      readonly order_id: string;
      readonly key: string;
      readonly amount_cents: string;
      readonly state: 'open' | AttemptEnd;
      readonly version: number;
      readonly opened_at: Date;
      readonly available_at: Date;
      readonly last_error: string | null;
    };
    payment_cases: PaymentCaseRow;
    payments: PaymentRow & OfSale;
    payments_archive: PaymentRow;
    reconcile_leases: { readonly sale_id: string; readonly owner: string; readonly leased_until: Date };
    reconcile_runs: {
      readonly id: string;
      readonly sale_id: string | null;
      readonly applied: number;
      readonly actor: string;
      readonly started_at: Date;
      readonly finished_at: Date | null;
      readonly outcome: RunOutcome | null;
      readonly figures_json: string | null;
      readonly findings_json: string | null;
    };
    refunds: RefundRow & OfSale;
    revocations: RevocationRow;
    sale_edits: SaleEditRow;
    sale_calendar: { readonly id: number };
    sales: SaleRow;
    webhook_deliveries: WebhookDeliveryRow;
    webhook_endpoints: WebhookEndpointRow;
    witness_findings: WitnessFindingRow;
    witness_position: {
      readonly id: number;
      readonly position: string;
      /** The time of the newest event that was read. */
      readonly read_to: Date;
      /** Rises with each write, so that only one keeper continues from a position. */
      readonly version: string;
      readonly updated_at: Date;
    };
    worker_slots: WorkerSlotRow;
  }
}

/** All our tables, except that of the migration runner. */
export const TABLE_NAMES = [
  'audit_log',
  'compensation_jobs',
  'coupon_codes',
  'coupons',
  'coupons_archive',
  'dead_letters',
  'entry_rules',
  'job_leases',
  'notifications',
  'order_metadata',
  'order_metadata_archive',
  'order_ranges',
  'order_refunds',
  'order_traces',
  'order_traces_archive',
  'orders',
  'orders_archive',
  'outbox',
  'payment_attempts',
  'payment_cases',
  'payments',
  'payments_archive',
  'reconcile_leases',
  'reconcile_runs',
  'refunds',
  'revocations',
  'sale_edits',
  'sale_calendar',
  'sales',
  'webhook_deliveries',
  'webhook_endpoints',
  'witness_findings',
  'witness_position',
  'worker_slots',
] as const satisfies readonly (keyof Tables)[];

/** The columns of a row that a list names. */
export type Columns<Row, List extends readonly (keyof Row)[]> = Pick<Row, List[number]>;

export interface SaleRow {
  readonly id: string;
  readonly sku: string;
  readonly title: string;
  readonly price_cents: number;
  readonly currency: string;
  readonly stock: number;
  readonly sold: number;
  readonly limit_per_buyer: number;
  readonly buckets: number;
  readonly opens_at: Date;
  readonly closes_at: Date;
  readonly warms_at: Date | null;
  readonly payment_window_ms: number | null;
  /** Terms that `readCouponTerms` can read. */
  readonly coupon: string | null;
  readonly state: SaleState;
  readonly epoch: number;
  readonly due_at: Date | null;
  readonly compared_at: Date | null;
  readonly compare_after: Date | null;
  readonly closed_at: Date | null;
  readonly retired_at: Date | null;
  /** `begun`: no program asks Redis for it. `done`: Redis forgot it. `archiving`, `archived`: so are its orders. */
  readonly retirement: 'none' | 'begun' | 'done' | 'archiving' | 'archived';
  /** When the archive next handles a sale that is `archiving`. */
  readonly archive_after: Date | null;
}

export interface SaleEditRow {
  readonly id: string;
  readonly sale_id: string;
  readonly units: number;
  readonly epoch: number;
  readonly state: EditState;
  readonly actor: string;
  readonly created_at: Date;
}

export const SALE_COLUMNS = [
  'id',
  'sku',
  'title',
  'price_cents',
  'currency',
  'stock',
  'sold',
  'limit_per_buyer',
  'buckets',
  'opens_at',
  'closes_at',
  'warms_at',
  'payment_window_ms',
  'coupon',
  'state',
  'epoch',
  'retired_at',
] as const satisfies (keyof SaleRow)[];

export function saleOf(row: Columns<SaleRow, typeof SALE_COLUMNS>): Sale {
  return {
    saleId: row.id,
    sku: row.sku,
    title: row.title,
    priceCents: row.price_cents,
    currency: row.currency,
    stock: row.stock,
    sold: row.sold,
    limitPerBuyer: row.limit_per_buyer,
    buckets: row.buckets,
    opensAtMs: row.opens_at.getTime(),
    closesAtMs: row.closes_at.getTime(),
    warmBeforeMs: row.warms_at === null ? null : row.opens_at.getTime() - row.warms_at.getTime(),
    paymentWindowMs: row.payment_window_ms,
    ...(row.coupon === null ? {} : { coupon: row.coupon }),
    state: row.state,
    epoch: row.epoch,
    retiredAtMs: row.retired_at?.getTime() ?? null,
  };
}

export type OrderIdRow = Pick<OrderRow, 'id'>;

export interface OrderRow {
  readonly id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly request_id: string;
  readonly batch_id: string;
  readonly quantity: number;
  readonly amount_cents: string;
  /** Tells whether the units count as sold. `after_paid` adds detail. */
  readonly state: PurchaseState;
  readonly after_paid: MoneyState | null;
  /** Null if nothing was refunded. */
  readonly refunded_cents: string | null;
  readonly reason: FailureReason | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly expires_at: Date | null;
  readonly paid_at: Date | null;
}

export const ORDER_COLUMNS = [
  'id',
  'sale_id',
  'user_id',
  'request_id',
  'batch_id',
  'quantity',
  'amount_cents',
  'state',
  'after_paid',
  'refunded_cents',
  'reason',
  'created_at',
  'expires_at',
  'paid_at',
] as const satisfies (keyof OrderRow)[];

export function orderOf(row: Columns<OrderRow, typeof ORDER_COLUMNS>): Order {
  return {
    orderId: row.id,
    userId: row.user_id,
    saleId: row.sale_id,
    requestId: row.request_id,
    batchId: row.batch_id,
    quantity: row.quantity,
    amountCents: Number(row.amount_cents),
    state: stateOf(row.state, row.after_paid),
    refundedCents: Number(row.refunded_cents ?? 0),
    reason: row.reason,
    createdAtMs: row.created_at.getTime(),
    expiresAtMs: row.expires_at?.getTime() ?? null,
    paidAtMs: row.paid_at?.getTime() ?? null,
  };
}

export interface OfSale {
  /** Null if the previous release wrote the row. */
  readonly sale_id: string | null;
}

/** Orders without metadata have no row. */
interface OrderMetadataRow {
  readonly order_id: string;
  /** JSON. */
  readonly metadata: string;
}

/** Orders without a stored trace id have no row. */
interface OrderTraceRow {
  readonly order_id: string;
  readonly trace_id: Buffer;
}

/** The orders of one sale that one transaction wrote: their first and last id, and their number. */
export interface OrderRangeRow {
  readonly sale_id: string;
  readonly first_id: string;
  readonly last_id: string;
  readonly orders: number;
}

export interface OutboxTableRow {
  readonly id: string;
  readonly kind: OutboxKind;
  readonly key: string;
  /** JSON. Its shape depends on `kind`: see `OutboxPayloads`. */
  readonly payload: string;
  readonly available_at: Date;
  readonly attempts: number;
  readonly created_at: Date;
  readonly done_at: Date | null;
}

export interface PaymentRow {
  readonly payment_id: string;
  readonly order_id: string;
  readonly amount_cents: string;
  readonly created_at: Date;
}

export interface RefundRow {
  readonly payment_id: string;
  readonly order_id: string;
  readonly amount_cents: string;
  readonly reason: string;
  readonly state: RefundState;
  readonly attempts: number;
  readonly available_at: Date;
  readonly last_error: string | null;
  readonly leased_until: Date | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface OrderRefundRow {
  readonly id: string;
  readonly order_id: string;
  readonly payment_id: string;
  /** Chosen by the caller, so that a repeated request is the same refund. */
  readonly key: string;
  readonly amount_cents: string;
  readonly restock: number;
  readonly reason: string;
  readonly actor: string;
  readonly state: OrderRefundState;
  readonly attempts: number;
  readonly available_at: Date;
  readonly leased_until: Date | null;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface PaymentCaseRow {
  readonly id: string;
  readonly kind: CaseKind;
  readonly subject: string;
  readonly payment_id: string | null;
  readonly order_id: string | null;
  readonly amount_cents: string | null;
  readonly currency: string | null;
  readonly detail: string;
  readonly state: CaseState;
  readonly created_at: Date;
  readonly updated_at: Date;
}

interface CouponRow {
  readonly order_id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly created_at: Date;
}

export interface CouponCodeRow {
  readonly code: string;
  readonly order_id: string;
  readonly sale_id: string;
  readonly user_id: string;
  readonly currency: string;
  readonly value_cents: string | null;
  readonly percent: number | null;
  readonly min_cents: string;
  readonly state: StoredCouponState;
  /** The order that has reserved or redeemed the coupon. Null if there is none, or if the shop itself redeemed it. */
  readonly used_order: string | null;
  /** The key of the charge, or the reference of the shop. */
  readonly used_key: string | null;
  readonly discount_cents: string | null;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly redeemed_at: Date | null;
}

export interface DeadLetterRow {
  readonly id: string;
  readonly message_id: string;
  readonly consumer_group: string;
  readonly origin_topic: string;
  readonly sale_id: string | null;
  readonly batch_id: string | null;
  readonly body: string;
  readonly reason: DeadLetterReason;
  readonly detail: string;
  readonly state: DeadLetterState;
  readonly attempts: number;
  readonly created_at: Date;
  readonly replays: number;
  readonly replay_started_at: Date | null;
  readonly note: string | null;
  /** The batch, while this is its only parked dead letter. */
  readonly parked_batch: string | null;
}

export interface CompensationJobRow {
  readonly id: string;
  readonly kind: StoredKind<CompensatedKind>;
  readonly subject: string;
  readonly sale_id: string;
  readonly batch_id: string | null;
  readonly user_id: string | null;
  readonly request_id: string | null;
  readonly detail: string;
  readonly state: JobState;
  readonly attempts: number;
  readonly available_at: Date;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export interface RevocationRow {
  readonly number: number;
  readonly user_id: string | null;
  readonly issued_before: Date | null;
  readonly token_id: string | null;
  readonly actor: string;
  readonly created_at: Date;
}

export interface WorkerSlotRow {
  readonly slot: number;
  readonly owner: string | null;
  readonly leased_until: Date;
}

export interface WebhookEndpointRow {
  readonly id: string;
  readonly url: string;
  readonly secret: string;
  /** Signs too, until then. */
  readonly secret_before: string | null;
  readonly secret_before_until: Date | null;
  /** Types of events, separated by commas. */
  readonly events: string;
  readonly state: 'active' | 'paused' | 'failed';
  readonly state_since: Date;
  readonly failures: number;
  readonly failing_since: Date | null;
  readonly available_at: Date;
  readonly last_error: string | null;
  readonly created_at: Date;
}

export interface WebhookDeliveryRow {
  readonly id: string;
  readonly endpoint_id: string;
  readonly order_id: string;
  /** Number of the event in the outbox. */
  readonly sequence: string;
  readonly type: OrderEventType;
  readonly sale_id: string;
  readonly happened_at: Date;
  readonly state: 'due' | 'delivered' | 'dropped';
  readonly attempts: number;
  readonly available_at: Date;
  readonly last_error: string | null;
  readonly created_at: Date;
}

export interface WitnessFindingRow {
  readonly id: string;
  /** The transaction: its GTID, or its end as `file/offset@server`. */
  readonly place: string;
  readonly kind: WitnessKind;
  readonly subject: string;
  readonly order_id: string | null;
  readonly sale_id: string | null;
  readonly detail: string;
  readonly committed_at: Date;
  readonly state: WitnessState;
  readonly created_at: Date;
  readonly updated_at: Date;
}

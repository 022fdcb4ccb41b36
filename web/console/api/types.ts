// Bodies that the console reads. Times that end in `At` are ISO 8601, times that end in `AtMs` are Unix ms, and money
// is in the smallest unit of its currency.

import type { Me } from '../../../src/contract/access.js';
import type { DeadLetter } from '../../../src/contract/dead-letters.js';
import type { Refund } from '../../../src/contract/payments.js';
import type { CompensationJob } from '../../../src/contract/reconcile.js';
import type { Switch } from '../../../src/contract/rules.js';
import type { Sale } from '../../../src/contract/sales.js';

export type { AuditEntry } from '../../../src/contract/access.js';
export type {
  Broker,
  BrokerClient,
  ConsumerGroup,
  DiscardedHalf,
  HalfMessage,
  Message,
  MqList,
  MqStatus,
  Topic,
} from '../../../src/contract/broker.js';
export type {
  BulkEnd,
  BulkPreview,
  BulkProgress,
  DeadLetterWithOrders,
  PurchaseOfBatch,
} from '../../../src/contract/dead-letters.js';
export type { Condition, LiveSale, RunningProgram, Snapshot } from '../../../src/contract/live.js';
export type { FoundCoupon, RevokedStep } from '../../../src/contract/coupons.js';
export type { FoundOrder, OrderRefund, VoidStep } from '../../../src/contract/orders.js';
export type { ListedRefund, PaymentCase, RefundCounts } from '../../../src/contract/payments.js';
export type { Readiness } from '../../../src/contract/probes.js';
export type { FieldError } from '../../../src/contract/problem.js';
export type { Finding, ReconcileRun, ResolvedSale, SaleReport } from '../../../src/contract/reconcile.js';
export type { Breakers, RuleChange, RulesStatus, Switches, WaitingRoom } from '../../../src/contract/rules.js';
export type { Bucket, MovedSale, PlannedSale, SaleSecond, SaleSeconds } from '../../../src/contract/sales.js';
export type { Stage, Trace, TraceStep } from '../../../src/contract/traces.js';
export type { Webhook, WebhookDelivery, WebhookTest } from '../../../src/contract/webhooks.js';
export type { WitnessFinding } from '../../../src/contract/witness.js';
export type { CompensationJob, DeadLetter, Me, Refund, Sale, Switch };

export type Role = Me['role'];
/** How many answers had each code. */
export type Counts = Readonly<Record<string, number>>;
/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = Readonly<Record<string, Json>>;
/** The rules of admission, as the console reads them. */
export interface StoredRules {
  readonly version: number;
  readonly rules: JsonObject;
}

/** Returns all values of a field. Does not compile if a value is missing. */
const wordsOf = <W extends string>(words: Readonly<Record<W, true>>): readonly W[] => Object.keys(words) as W[];

export const SALE_STATES = wordsOf<Sale['state']>({ draft: true, warm: true, open: true, paused: true, closed: true });
export const DEAD_LETTER_STATES = wordsOf<DeadLetter['state']>({ parked: true, replayed: true, discarded: true });
export const DEAD_LETTER_REASONS = wordsOf<DeadLetter['reason']>({
  retries_exhausted: true,
  undecodable: true,
  unknown_version: true,
  unknown_sale: true,
  forged: true,
});
export const REFUND_STATES = wordsOf<Refund['state']>({ due: true, refunded: true, failed: true });
export const JOB_STATES = wordsOf<CompensationJob['state']>({ pending: true, compensated: true, failed_final: true });
export const JOB_KINDS = wordsOf<CompensationJob['kind']>({
  leak: true,
  not_marked: true,
  unreleased: true,
  drift: true,
  stale_marker: true,
  stuck_outbox: true,
});
export const LEVELS = wordsOf<Switch['level']>({ L0: true, L1: true, L2: true, L3: true, L4: true });

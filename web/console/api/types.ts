/** What the api of operators answers: times that end in `At` are ISO 8601, those that end in `AtMs` Unix ms, money is in the smallest unit of its currency. */

export type Role = 'viewer' | 'operator' | 'admin';

/** Who the token speaks of: `GET /admin/v1/me`. */
export interface Me {
  readonly userId: string;
  readonly role: Role;
  readonly expiresAtMs: number;
}

export interface FieldError {
  readonly field: string;
  readonly message: string;
}

export const SALE_STATES = ['draft', 'warm', 'open', 'paused', 'closed'] as const;

export interface Sale {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  readonly currency: string;
  readonly limitPerBuyer: number;
  readonly opensAt: string;
  readonly closesAt: string;
  /** Such as `10m`; null: a person moves the sale. */
  readonly warmBefore: string | null;
  readonly stock: number;
  readonly sold: number;
  readonly buckets: number;
  readonly epoch: number;
  readonly state: (typeof SALE_STATES)[number];
  readonly retiredAt: string | null;
}

export interface PlannedSale {
  readonly sale: Sale;
  readonly status: 'waits' | 'ready' | 'not_ready' | 'by_hand' | 'selling' | 'paused' | 'over' | 'missed';
  readonly missing: readonly string[];
  readonly warmsAt: string | null;
}

/** How often each code was answered. */
export type Counts = Readonly<Record<string, number>>;

export interface LiveSale {
  readonly saleId: string;
  readonly title: string;
  readonly sku: string;
  readonly state: 'warm' | 'open' | 'paused' | 'repair';
  readonly stock: number;
  readonly sold: number;
  readonly held: number | null;
  readonly left: number | null;
  readonly buckets: number;
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** The second that the rates are of; null: they are not known. */
  readonly secondAtMs: number | null;
  readonly acceptedPerSecond: number | null;
  readonly landedPerSecond: number | null;
  readonly refusedPerSecond: Counts | null;
  /** Batches. */
  readonly pending: number | null;
  readonly pendingOldestMs: number | null;
  /** Tickets in its waiting room; left out or null: it has none. */
  readonly waiting?: number | null;
}

export interface RunningProgram {
  readonly kind: 'api' | 'worker' | 'keeper';
  /** `host:pid`. */
  readonly id: string;
  readonly seenMsAgo: number;
  readonly version: string | null;
  readonly ready: boolean;
  readonly problems: readonly string[];
}

export interface Condition {
  readonly name: string;
  readonly severity: 'page' | 'ticket' | 'info';
  readonly about: string | null;
  readonly text: string;
  readonly sinceMs: number | null;
}

/** One second of everything: event `snapshot` of `GET /admin/v1/live`. */
export interface Snapshot {
  readonly atMs: number;
  readonly sales: readonly LiveSale[];
  readonly moreSales: number;
  readonly programs: readonly RunningProgram[];
  readonly conditions: readonly Condition[];
  /** What could not be read, as sentences. */
  readonly missing: readonly string[];
}

export interface SaleSecond {
  readonly atMs: number;
  readonly won: number | null;
  readonly landed: number;
  readonly refused: Counts | null;
}

export interface SaleSeconds {
  readonly fromMs: number;
  readonly toMs: number;
  readonly seconds: readonly SaleSecond[];
}

export interface Bucket {
  readonly bucket: number;
  readonly state: string | null;
  readonly epoch: number | null;
  readonly sameServer: boolean | null;
  readonly unitsLeft: number | null;
  readonly pending: number | null;
  readonly pendingOldestMs: number | null;
  readonly error: string | null;
}

export interface Breakers {
  readonly mode: 'off' | 'dry_run' | 'on';
  readonly breakers: readonly {
    readonly name: string;
    readonly state: 'closed' | 'open' | 'half_open';
    readonly sinceMs: number | null;
    /** `shared`, or the api whose own breaker it is. */
    readonly by: string;
  }[];
}

export interface Order {
  readonly orderId: string;
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
  readonly batchId: string;
  readonly quantity: number;
  readonly amountCents: number;
  readonly currency: string;
  readonly state: 'pending_payment' | 'paid' | 'cancelled' | 'expired' | 'failed';
  readonly reason: string | null;
  readonly createdAt: string;
}

export interface Stage {
  readonly stage: 'half' | 'deduct' | 'commit' | 'delivery' | 'row' | 'payment' | 'notification';
  readonly state: 'done' | 'waiting' | 'failed' | 'not_reached' | 'unknown';
  readonly at: string | null;
  readonly dueAt: string | null;
  readonly text: string;
}

export interface TraceStep {
  readonly at: string | null;
  readonly source: 'redis' | 'mysql' | 'broker';
  readonly what: string;
  readonly detail: string;
}

export interface Purchase {
  readonly userId: string;
  readonly saleId: string;
  readonly requestId: string;
  readonly state: string;
  /** Where it stands and what happens next. */
  readonly sentence: string;
  readonly nextAt: string | null;
  readonly timeline: readonly Stage[];
  readonly steps: readonly TraceStep[];
}

export interface BrokerReport {
  readonly name: string;
  readonly address: string;
  /** Why it does not answer; null: it does. */
  readonly down: string | null;
  readonly version: string;
  readonly putPerSecond: number;
  readonly getPerSecond: number;
  /** 0 to 1. */
  readonly diskUsed: number;
}

export interface GroupReport {
  readonly group: string;
  readonly topic: string;
  readonly lag: number;
  readonly oldestMs: number | null;
  readonly clients: number;
}

export interface MqStatus {
  readonly brokers: readonly BrokerReport[];
  readonly groups: readonly GroupReport[];
  readonly deadLetters: readonly { readonly topic: string; readonly kept: number }[];
  readonly halves: {
    readonly open: number;
    readonly oldestMs: number | null;
    readonly checksMost: number;
    readonly more: boolean;
  };
  readonly discarded: number;
  readonly producers: Counts;
}

/** A list of what the brokers hold. */
export interface MqList<T> {
  readonly items: readonly T[];
  readonly more: boolean;
  /** Brokers whose part is missing. */
  readonly down: readonly Pick<BrokerReport, 'name' | 'address' | 'down'>[];
}

export interface TopicReport {
  readonly topic: string;
  readonly type: string;
  readonly queues: number;
  readonly kept: number;
  readonly lastStoredAtMs: number | null;
}

export interface HalfMessage {
  readonly broker: string;
  readonly topic: string;
  readonly key: string;
  readonly messageId: string;
  readonly ageMs: number;
  readonly checks: number;
  readonly saleId: string | null;
  readonly purchases: number | null;
}

export interface DiscardedHalf extends HalfMessage {
  readonly discardedAtMs: number;
  readonly resumedAtMs: number | null;
  readonly offsetId: string;
}

export interface BrokerClient {
  readonly clientId: string;
  readonly address: string;
  readonly language: string;
  /** Of a producer: its topic. */
  readonly group?: string;
}

export interface FoundMessage {
  readonly broker: string;
  readonly topic: string;
  readonly queueId: number;
  readonly queueOffset: number;
  readonly offsetId: string;
  readonly bornAtMs: number;
  readonly storedAtMs: number;
  readonly deliveries: number;
  readonly body: string;
  readonly properties: Readonly<Record<string, string>>;
}

export const DEAD_LETTER_STATES = ['parked', 'replayed', 'discarded'] as const;
export const DEAD_LETTER_REASONS = [
  'retries_exhausted',
  'undecodable',
  'unknown_version',
  'unknown_sale',
  'forged',
] as const;

export interface DeadLetter {
  readonly deadLetterId: string;
  readonly messageId: string;
  readonly group: string;
  readonly originTopic: string;
  readonly saleId: string | null;
  readonly batchId: string | null;
  readonly reason: (typeof DEAD_LETTER_REASONS)[number];
  /** The last error. */
  readonly detail: string;
  readonly attempts: number;
  readonly state: (typeof DEAD_LETTER_STATES)[number];
  readonly parkedAt: string;
  readonly replays: number;
  readonly replayStartedAt: string | null;
  readonly note: string | null;
}

/** A purchase of a dead letter, beside the order that the buyer has for it. */
export interface PurchaseAndOrder {
  readonly userId: string;
  readonly requestId: string;
  readonly quantity: number;
  readonly order: {
    readonly orderId: string;
    readonly state: string;
    readonly reason: string | null;
    readonly batchId: string;
    readonly quantity: number;
  } | null;
}

export interface DeadLetterWithBody extends DeadLetter {
  readonly body: string;
  readonly batch: object | null;
  /** Null: the body is no batch. */
  readonly orders: readonly PurchaseAndOrder[] | null;
}

export interface BulkPreview {
  readonly matching: number;
  /** One bulk works on so many at most. */
  readonly most: number;
  readonly first: readonly DeadLetter[];
}

/** Event `progress` of a bulk. */
export interface BulkProgress {
  readonly deadLetterId: string;
  readonly outcome: string;
  readonly note: string | null;
  readonly ok: boolean;
  readonly handled: number;
  readonly of: number;
}

/** Event `end` of a bulk. */
export interface BulkEnd {
  readonly done: number;
  readonly failed: number;
  readonly left: number;
  readonly stopped: 'fault' | 'unfinished' | 'time_up' | 'drained' | null;
  readonly failures: readonly { readonly id: string; readonly why: string }[];
}

/** Money that a person has to look after. */
export interface PaymentCase {
  readonly caseId: string;
  readonly kind: 'unrecorded' | 'refund_failed' | 'refunded_elsewhere' | 'disputed' | 'refunded_twice';
  readonly subject: string;
  readonly paymentId: string | null;
  readonly orderId: string | null;
  readonly amountCents: number | null;
  readonly currency: string | null;
  readonly detail: string;
  readonly state: 'open' | 'closed';
  readonly createdAt: string;
  readonly updatedAt: string;
}

export const REFUND_STATES = ['due', 'refunded'] as const;

export interface Refund {
  readonly paymentId: string;
  readonly orderId: string;
  readonly amountCents: number;
  readonly currency?: string | null;
  readonly reason: string;
  readonly state: (typeof REFUND_STATES)[number];
  readonly attempts: number;
  readonly lastError: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export const JOB_STATES = ['pending', 'compensated', 'failed_final'] as const;
export const JOB_KINDS = ['leak', 'unsettled', 'unreleased', 'drift', 'stale_marker', 'stuck_outbox'] as const;

export interface CompensationJob {
  readonly jobId: string;
  readonly kind: string;
  readonly saleId: string;
  readonly subject: string;
  readonly batchId: string | null;
  readonly userId: string | null;
  readonly requestId: string | null;
  readonly detail: string;
  readonly state: (typeof JOB_STATES)[number];
  readonly attempts: number;
  readonly lastError: string | null;
  readonly availableAt: string;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Its further fields say what it is about, by kind. */
export interface Finding {
  readonly kind: string;
  readonly saleId: string;
  readonly [field: string]: unknown;
}

export interface ReconcileRun {
  readonly runId: string;
  readonly saleId: string | null;
  readonly applied: boolean;
  readonly actor: string;
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly outcome: 'match' | 'findings' | 'partly' | 'none' | 'failed' | null;
  readonly figures: Counts;
  readonly findings: readonly Finding[];
}

export interface SaleReport {
  readonly runId: string;
  readonly outcome: 'match' | 'findings' | 'partly';
  readonly saleId: string;
  readonly more: boolean;
  readonly figures: Counts;
  readonly counts: Counts;
  readonly findings: readonly Finding[];
  readonly jobs: readonly CompensationJob[];
}

/** A value of JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = Readonly<Record<string, Json>>;

export interface StoredRules {
  readonly version: number;
  readonly rules: JsonObject;
}

export interface RulesStatus {
  readonly version: number;
  readonly inForce: 'everywhere' | 'not_everywhere' | 'nowhere';
  readonly apis: readonly {
    readonly host: string;
    readonly pid: number;
    readonly version: number | null;
    readonly follows: boolean;
    readonly refused: { readonly version: number; readonly reasons: readonly string[] } | null;
  }[];
}

export interface RuleChange {
  readonly version: number;
  readonly actor: string;
  readonly at: string;
}

export const LEVELS = ['L0', 'L1', 'L2', 'L3', 'L4'] as const;

export interface Switch {
  readonly endpoint: 'purchase' | 'status' | 'sale' | 'order';
  readonly level: (typeof LEVELS)[number];
  readonly percent: number;
  readonly inForce: boolean;
}

export interface Switches {
  readonly version: number;
  readonly mode: 'off' | 'dry_run' | 'on';
  readonly switches: readonly Switch[];
}

export interface AuditEntry {
  readonly auditId: string;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly before: Json;
  readonly after: Json;
}

/** `/readyz` of the api that serves the console. */
export interface Readiness {
  readonly ready: boolean;
  readonly dependencies: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[];
}

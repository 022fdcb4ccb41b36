import type { Dependency } from '../../../src/core/errors.js';
import type { CallName } from '../call-name.js';
import type { Rng } from './rng.js';

/**
 * Faults of a call.
 * - `delayed`: it takes time before or after it acts
 * - `failed`: it does not act, and the caller gets an error
 * - `reply_lost`: it acts, and the caller gets an error
 * - `late`: the caller gets an error, and it acts afterwards
 * - `away`: like `failed`, for every call to a dependency that is down
 * - `crashed_before`, `crashed_after`: the process of the caller dies before or after it acts
 * - `stalled`: the process of the caller stops for a while, as under SIGSTOP
 */
export const CALL_FAULTS = [
  ...(['delayed', 'failed', 'reply_lost', 'late', 'away'] as const),
  ...(['crashed_before', 'crashed_after', 'stalled'] as const),
] as const;
type CallFault = (typeof CALL_FAULTS)[number];

/** Faults of a message or of a transaction. */
export const OTHER_FAULTS = [
  'message_repeated', // delivered once more, now or much later
  'message_lost', // only messages of the writer groups, which a re-drive publishes again
  'delivery_lost', // uses up an attempt without reaching its worker
  'messages_reordered',
  'half_never_checked', // the broker has given up check-backs, and no commit has arrived
  'check_back_answer_lost', // the answer of the api never arrives
  'deadlocked', // the writer transaction is rolled back several times
] as const;
export type OtherFault = (typeof OTHER_FAULTS)[number];

export type Fault = CallFault | OtherFault;
export type Fate = Exclude<CallFault, 'delayed' | 'away'> | null;

/** How likely each fault is, per call or per message. Most runs have only a few, so that each also occurs alone. */
type Rates = Readonly<Record<Exclude<Fault, 'away'>, number>>;

interface Outage {
  readonly dependency: Dependency;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Calls of which a run may choose a target, which then fails half of the time. */
const TARGETS = [
  'sendHalf',
  'commit',
  'rollback',
  'deduct',
  'resolve',
  'precheck',
  'markRecorded',
  'release',
  'write',
  'ack',
  'publish',
  'receive',
  'receive',
  'lease',
  'markDone',
  'cancel',
  'findByPurchases',
  'transferOut',
  'transferIn',
  'endTransfer',
  'park',
  'unpark',
  'beginReplay',
  'close',
  'add',
  'done',
] as const satisfies readonly CallName[];
/** Targets of runs in which Redis loses data. Rare calls after a loss are chosen as often as all others. */
const TARGETS_AFTER_LOSS = [
  'reacquire',
  'reacquire',
  'commit',
  'liveBuyers',
  'raiseEpoch',
  'swap',
] as const satisfies readonly CallName[];
const TARGET_FATES = ['failed', 'reply_lost', 'late', 'crashed_before', 'crashed_after', 'stalled'] as const;
const TARGET_RATE = 0.5;

/** Calls after which a dependency may go down, in the middle of related steps. */
const TRIGGERS = [
  'sendHalf',
  'deduct',
  'commit',
  'rollback',
  'receive',
  'write',
  'markRecorded',
  'lease',
  'release',
  'publish',
  'cancel',
  'park',
  'unpark',
  'transferOut',
  'transferIn',
] as const satisfies readonly CallName[];
const TRIGGER_RATE = 0.4;
const TRIGGERED_MAX = 3;

/** The faults of one run, all drawn from its seed. */
export class Faults {
  /** Counts each fault, and for each call the faults other than delays. */
  readonly observed = new Map<Fault, number>();
  readonly hit = new Map<string, number>();
  readonly #rng: Rng;
  readonly #rates: Rates;
  readonly #outages: Outage[];
  readonly #trigger: { readonly call: CallName; readonly dependency: Dependency } | null;
  readonly #target: { readonly call: CallName; readonly fate: NonNullable<Fate> } | null;
  #healed = false;

  /** @param redisLosesData if true, the broker loses nothing, so that no batch is lost in both */
  constructor(rng: Rng, fromMs: number, chaosMs: number, redisLosesData = false) {
    this.#rng = rng;
    const rate = (usedIn: number, ...rates: [number, ...number[]]): number =>
      rng.chance(usedIn) ? rng.pick(rates) : 0;
    this.#rates = {
      delayed: rate(0.8, 0.05, 0.2, 0.5),
      failed: rate(0.3, 0.01, 0.05),
      reply_lost: rate(0.3, 0.01, 0.05),
      late: rate(0.3, 0.01, 0.05),
      crashed_before: rate(0.3, 0.003, 0.01),
      crashed_after: rate(0.3, 0.003, 0.01),
      stalled: rate(0.15, 0.003, 0.01),
      message_repeated: rate(0.3, 0.2, 0.5),
      message_lost: redisLosesData ? 0 : rate(0.15, 0.1, 0.4),
      delivery_lost: rate(redisLosesData ? 0.6 : 0.2, 0.2, 0.6),
      messages_reordered: rate(0.5, 1),
      half_never_checked: redisLosesData ? 0 : rate(0.15, 0.3, 0.8),
      check_back_answer_lost: rate(redisLosesData ? 0.5 : 0.2, 0.5),
      deadlocked: rate(0.1, 0.3, 0.9),
    };
    const targets = redisLosesData && rng.chance(0.5) ? TARGETS_AFTER_LOSS : TARGETS;
    this.#target = rng.chance(0.4) ? { call: rng.pick<CallName>(targets), fate: rng.pick(TARGET_FATES) } : null;
    this.#trigger = rng.chance(0.25)
      ? { call: rng.pick(TRIGGERS), dependency: rng.pick(['redis', 'mysql', 'rocketmq']) }
      : null;
    const outages: Outage[] = [];
    for (const dependency of ['redis', 'mysql', 'rocketmq'] as const) {
      if (!rng.chance(0.12)) continue;
      const startMs = fromMs + rng.range(0, chaosMs - 1);
      outages.push({ dependency, fromMs: startMs, toMs: startMs + drawOutageMs(rng) });
    }
    this.#outages = outages;
  }

  /** Ends all faults. */
  heal(): void {
    this.#healed = true;
  }

  get healed(): boolean {
    return this.#healed;
  }

  note(fault: Fault, call?: string): void {
    this.observed.set(fault, (this.observed.get(fault) ?? 0) + 1);
    if (call !== undefined && fault !== 'delayed') this.hit.set(call, (this.hit.get(call) ?? 0) + 1);
  }

  isAway(dependency: Dependency, nowMs: number): boolean {
    if (this.#healed || this.#outages.length === 0) return false;
    return this.#outages.some((one) => one.dependency === dependency && one.fromMs <= nowMs && nowMs < one.toMs);
  }

  /** Must be called when a call has acted, and may bring a dependency down. */
  acted(call: string, nowMs: number): void {
    const trigger = this.#trigger;
    if (this.#healed || trigger?.call !== call || this.#outages.length >= TRIGGERED_MAX) return;
    if (!this.#rng.chance(TRIGGER_RATE)) return;
    this.#outages.push({ dependency: trigger.dependency, fromMs: nowMs, toMs: nowMs + drawOutageMs(this.#rng) });
  }

  /** Returns the fault of this call, apart from delays and outages. */
  fateOf(call: string): Fate {
    if (this.#healed) return null;
    const target = this.#target;
    if (target !== null && target.call === call && this.#rng.chance(TARGET_RATE)) {
      // fewer crashes, so that processes finish some work
      if (!target.fate.startsWith('crashed') || this.#rng.chance(0.4)) return target.fate;
    }
    let dice = this.#rng.next();
    for (const fate of ['failed', 'reply_lost', 'late', 'crashed_before', 'crashed_after', 'stalled'] as const) {
      dice -= this.#rates[fate];
      if (dice < 0) return fate;
    }
    return null;
  }

  /** Returns the delay of a call in one direction, ms. Most are short, some outlast the hidden time of a delivery. */
  delayMs(): number {
    if (this.#healed || !this.#rng.chance(this.#rates.delayed)) return 0;
    const kind = this.#rng.next();
    if (kind < 0.8) return this.#rng.range(1, 20);
    return kind < 0.97 ? this.#rng.range(20, 1_500) : this.#rng.range(1_500, 20_000);
  }

  happens(fault: OtherFault): boolean {
    if (this.#healed || !this.#rng.chance(this.#rates[fault])) return false;
    this.note(fault);
    return true;
  }
}

const drawOutageMs = (rng: Rng): number => rng.pick([50, 500, 3_000, 12_000]);

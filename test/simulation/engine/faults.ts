import type { Dependency } from '../../../src/core/errors.js';
import type { Call } from '../call-name.js';
import type { Rng } from './rng.js';

/**
 * What can befall a call.
 * - `delayed`: it takes its time, before or after it acts
 * - `failed`: it does nothing, and the caller hears of it
 * - `reply_lost`: it acts, and the caller hears that it failed
 * - `late`: the caller hears that it failed, and it acts afterwards
 * - `away`: as `failed`, for every call to a dependency that is out
 * - `crashed_before`, `crashed_after`: the process of the caller dies before or after it acts
 * - `stalled`: the process of the caller stands still for a while, as under SIGSTOP
 */
export const CALL_FAULTS = [
  ...(['delayed', 'failed', 'reply_lost', 'late', 'away'] as const),
  ...(['crashed_before', 'crashed_after', 'stalled'] as const),
] as const;
type CallFault = (typeof CALL_FAULTS)[number];

/** What can befall a message on its way, or a transaction among others. */
export const OTHER_FAULTS = [
  'message_repeated', // published once more by nobody, now or much later
  'message_lost', // of the writers only: every other message has nobody who could send it again
  'delivery_unheard', // lent to a worker who never hears of it: its time runs out, and an attempt is gone
  'messages_reordered',
  'half_forgotten', // the broker has given up asking for it, and no commit arrived
  'check_back_unheard', // the answer of the process never arrives
  'deadlocked', // the writer transaction is rolled back and says so, again and again
] as const;
export type OtherFault = (typeof OTHER_FAULTS)[number];

export type Fault = CallFault | OtherFault;
export type Fate = Exclude<CallFault, 'delayed' | 'away'> | null;

/** How likely each one is, per call or per message; most runs have a few of them, so that each is seen alone too. */
type Rates = Readonly<Record<Exclude<Fault, 'away'>, number>>;

interface Outage {
  readonly dependency: Dependency;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Calls that a run may pick on: there half of them fail. Names of port methods. */
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
] as const satisfies readonly Call[];
const TARGET_FATES = ['failed', 'reply_lost', 'late', 'crashed_before', 'crashed_after', 'stalled'] as const;
const TARGET_RATE = 0.5;

/** Calls after which a dependency may go away at once: the gaps between two steps that belong together. */
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
] as const satisfies readonly Call[];
const TRIGGER_RATE = 0.4;
const TRIGGERED_MAX = 3;

/** The faults of one run, all drawn from its seed. */
export class Faults {
  /** How often each fault bit, and how often each call was hit by one that is not a mere delay. */
  readonly bitten = new Map<Fault, number>();
  readonly hit = new Map<string, number>();
  readonly #rng: Rng;
  readonly #rates: Rates;
  readonly #outages: Outage[];
  readonly #trigger: { readonly call: Call; readonly dependency: Dependency } | null;
  readonly #target: { readonly call: Call; readonly fate: NonNullable<Fate> } | null;
  #healed = false;

  /** @param forgetful Redis loses data in this run: then the broker loses nothing, since of both nobody could know */
  constructor(rng: Rng, fromMs: number, chaosMs: number, forgetful = false) {
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
      message_lost: forgetful ? 0 : rate(0.15, 0.1, 0.4),
      delivery_unheard: rate(0.2, 0.2, 0.6),
      messages_reordered: rate(0.5, 1),
      half_forgotten: forgetful ? 0 : rate(0.15, 0.3, 0.8),
      check_back_unheard: rate(0.2, 0.5),
      deadlocked: rate(0.1, 0.3, 0.9),
    };
    this.#target = rng.chance(0.4) ? { call: rng.pick(TARGETS), fate: rng.pick(TARGET_FATES) } : null;
    this.#trigger = rng.chance(0.25)
      ? { call: rng.pick(TRIGGERS), dependency: rng.pick(['redis', 'mysql', 'rocketmq']) }
      : null;
    const outages: Outage[] = [];
    for (const dependency of ['redis', 'mysql', 'rocketmq'] as const) {
      if (!rng.chance(0.12)) continue;
      const begin = fromMs + rng.range(0, chaosMs - 1);
      outages.push({ dependency, fromMs: begin, toMs: begin + drawOutageMs(rng) });
    }
    this.#outages = outages;
  }

  /** From now on nothing befalls anybody any more. */
  heal(): void {
    this.#healed = true;
  }

  get healed(): boolean {
    return this.#healed;
  }

  note(fault: Fault, call?: string): void {
    this.bitten.set(fault, (this.bitten.get(fault) ?? 0) + 1);
    if (call !== undefined && fault !== 'delayed') this.hit.set(call, (this.hit.get(call) ?? 0) + 1);
  }

  isAway(dependency: Dependency, nowMs: number): boolean {
    if (this.#healed || this.#outages.length === 0) return false;
    return this.#outages.some((one) => one.dependency === dependency && one.fromMs <= nowMs && nowMs < one.toMs);
  }

  /** A call has acted. */
  acted(call: string, nowMs: number): void {
    const trigger = this.#trigger;
    if (this.#healed || trigger?.call !== call || this.#outages.length >= TRIGGERED_MAX) return;
    if (!this.#rng.chance(TRIGGER_RATE)) return;
    this.#outages.push({ dependency: trigger.dependency, fromMs: nowMs, toMs: nowMs + drawOutageMs(this.#rng) });
  }

  /** What befalls this call, apart from delays and outages. */
  fateOf(call: string): Fate {
    if (this.#healed) return null;
    const target = this.#target;
    if (target !== null && target.call === call && this.#rng.chance(TARGET_RATE)) {
      // a process that dies at half of its calls would never come to anything
      if (!target.fate.startsWith('crashed') || this.#rng.chance(0.4)) return target.fate;
    }
    let dice = this.#rng.next();
    for (const fate of ['failed', 'reply_lost', 'late', 'crashed_before', 'crashed_after', 'stalled'] as const) {
      dice -= this.#rates[fate];
      if (dice < 0) return fate;
    }
    return null;
  }

  /** How long a call takes on one of its ways, ms; most are short, and some longer than a loan of a delivery. */
  delayMs(): number {
    if (this.#healed || !this.#rng.chance(this.#rates.delayed)) return 0;
    const kind = this.#rng.next();
    if (kind < 0.8) return this.#rng.range(1, 20);
    return kind < 0.97 ? this.#rng.range(20, 1_500) : this.#rng.range(1_500, 20_000);
  }

  befalls(fault: OtherFault): boolean {
    if (this.#healed || !this.#rng.chance(this.#rates[fault])) return false;
    this.note(fault);
    return true;
  }
}

const drawOutageMs = (rng: Rng): number => rng.pick([50, 500, 3_000, 12_000]);

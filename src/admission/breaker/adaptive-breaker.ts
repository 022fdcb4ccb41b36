import type { BreakerRules } from './breaker-rules.js';
import { assertNever } from '../../core/errors.js';
import type { BreakerState } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import { CallWindow, LearnedRate } from './call-window.js';

/** What was measured of the calls to a dependency. */
export interface Signals {
  /** In the window. */
  readonly calls: number;
  readonly perSecond: number;
  /** What is usual; null until enough was learned. */
  readonly usualPerSecond: number | null;
  readonly failureShare: number;
  readonly p95Ms: number;
}

/** All signals as one number: 0 when all is well; from `openAt` on the breaker opens. */
export function scoreOf(signals: Signals, { callsMin, weights, rate, failures, latencyMs }: BreakerRules): number {
  if (signals.calls < callsMin) return 0;
  const { perSecond, usualPerSecond, failureShare, p95Ms } = signals;
  const crowd = usualPerSecond === null ? 0 : perSecond / Math.max(usualPerSecond, rate.floorPerSecond);
  return (
    weights.rate * along(rate.ramp, crowd) +
    weights.failures * along(failures, failureShare) +
    weights.latency * along(latencyMs, p95Ms)
  );
}

/** 0 up to `from`, 1 from `to` on, evenly in between. */
function along({ from, to }: { readonly from: number; readonly to: number }, value: number): number {
  return Math.min(1, Math.max(0, (value - from) / (to - from)));
}

/**
 * How long the breaker stays open before its next trial, ms.
 * @param failedTrials in a row; the wait doubles with each, up to the cap
 * @param random 0 to 1; makes the wait shorter, so the cap holds
 */
export function probeWaitMs(failedTrials: number, random: number, { firstMs, capMs, jitter }: BreakerRules['probe']) {
  return Math.min(capMs, firstMs * 2 ** failedTrials) * (1 - jitter * random);
}

interface BreakerParts {
  /** Read at each call. */
  readonly rules: () => BreakerRules;
  readonly clock: Clock;
  /** 0 to 1. */
  readonly random: () => number;
  readonly moved: (to: BreakerState) => void;
  readonly refused: (mode: 'dry_run' | 'on') => void;
}

/** What `begin` returns while the layer is off. */
export const UNWATCHED = 0;
/** The score is computed at most this often. */
const SCORE_EVERY_MS = 100;

/**
 * The breaker of one dependency in one process. It refuses requests at admission, before anything has begun; calls that
 * are under way are only watched, never refused, so that no purchase is cut in two.
 *
 * closed → open when the score is high; open → half_open when the wait is over; half_open lets a few requests through
 * and closes when their calls go well, or opens for longer. Beside its own state it follows the quorum of all
 * processes: that refuses requests too, but is not reported as a state of this process.
 */
export class AdaptiveBreaker {
  readonly #parts: BreakerParts;
  #state: BreakerState = 'closed';
  /** Rises with each move: a call that began before a move says nothing about the state after it. */
  #era = 1;
  #window: CallWindow;
  readonly #usual: LearnedRate;
  #scoredMs = -Infinity;
  #closedMs = -Infinity;
  #openUntilMs = 0;
  /** In a row, for the wait. */
  #failedTrials = 0;
  #trialMs = 0;
  #letThrough = 0;
  #wentWell = 0;
  #openForAllUntilMs = -Infinity;

  constructor(parts: BreakerParts) {
    this.#parts = parts;
    const nowMs = parts.clock.monotonicMs();
    this.#window = new CallWindow(parts.rules().windowMs, nowMs);
    this.#usual = new LearnedRate(nowMs);
  }

  /** By its own calls, whatever the quorum is. */
  state(): BreakerState {
    this.#wake(this.#parts.clock.monotonicMs());
    return this.#state;
  }

  /** Called once for each request that needs the dependency. In a trial, false takes one of its places. */
  refuses(): boolean {
    const { mode, trial } = this.#parts.rules();
    if (mode === 'off') return false;
    if (!this.#isOpen(this.#parts.clock.monotonicMs(), trial)) return false;
    this.#parts.refused(mode);
    return mode === 'on';
  }

  /** A call to the dependency begins. @returns what to pass to `end` */
  begin(): number {
    if (this.#parts.rules().mode === 'off') return UNWATCHED;
    this.#wake(this.#parts.clock.monotonicMs());
    return this.#era;
  }

  /** @param era from `begin` */
  end(era: number, failed: boolean, latencyMs: number): void {
    const rules = this.#parts.rules();
    if (era === UNWATCHED || rules.mode === 'off') return;
    const nowMs = this.#parts.clock.monotonicMs();
    this.#wake(nowMs);
    if (era !== this.#era) return;
    if (this.#state === 'half_open') this.#judgeTrial(nowMs, rules, failed || latencyMs >= rules.latencyMs.to);
    else this.#learn(nowMs, rules, failed, latencyMs);
  }

  /** @param untilMs the quorum counts until then, even if reports cannot be read again */
  followQuorum(openForAll: boolean, untilMs: number): void {
    this.#openForAllUntilMs = openForAll ? untilMs : -Infinity;
  }

  /** Another process has closed its breaker, so the dependency may be well: half open now. */
  tryNow(): void {
    if (this.#state === 'open') this.#openUntilMs = this.#parts.clock.monotonicMs();
  }

  /** The layer was switched off or on: earlier calls say nothing about later ones. */
  forget(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    this.#window = new CallWindow(this.#parts.rules().windowMs, nowMs);
    this.#usual.resume(nowMs);
    this.#failedTrials = 0;
    this.#openForAllUntilMs = -Infinity;
    if (this.#state !== 'closed') this.#move('closed');
  }

  #isOpen(nowMs: number, trial: BreakerRules['trial']): boolean {
    this.#wake(nowMs);
    switch (this.#state) {
      case 'closed':
        return nowMs < this.#openForAllUntilMs;
      case 'open':
        return true;
      case 'half_open':
        return !this.#letsThrough(nowMs, trial);
      default:
        return assertNever(this.#state);
    }
  }

  /** A request that was let through may never reach the dependency, so places come back. */
  #letsThrough(nowMs: number, trial: BreakerRules['trial']): boolean {
    if (nowMs - this.#trialMs >= trial.waitMs) {
      this.#trialMs = nowMs;
      this.#letThrough = 0;
    }
    if (this.#letThrough >= trial.calls) return false;
    this.#letThrough++;
    return true;
  }

  #wake(nowMs: number): void {
    if (this.#state !== 'open' || nowMs < this.#openUntilMs) return;
    this.#trialMs = nowMs;
    this.#letThrough = 0;
    this.#wentWell = 0;
    this.#move('half_open');
  }

  #judgeTrial(nowMs: number, rules: BreakerRules, wentBadly: boolean): void {
    if (wentBadly) {
      this.#failedTrials++;
      return this.#open(nowMs, rules);
    }
    if (++this.#wentWell < rules.trial.calls) return;
    this.#closedMs = nowMs;
    this.#window = new CallWindow(rules.windowMs, nowMs);
    this.#usual.resume(nowMs);
    this.#move('closed');
  }

  #learn(nowMs: number, rules: BreakerRules, failed: boolean, latencyMs: number): void {
    if (this.#window.windowMs !== rules.windowMs) this.#window = new CallWindow(rules.windowMs, nowMs);
    this.#window.add(nowMs, failed, latencyMs);
    this.#usual.count(nowMs, rules.rate.halfLifeMs);
    if (nowMs - this.#scoredMs < SCORE_EVERY_MS) return;
    this.#scoredMs = nowMs;
    if (this.#score(nowMs, rules) < rules.openAt) return;
    const isCalm = nowMs - this.#closedMs >= rules.probe.calmMs;
    this.#failedTrials = isCalm ? 0 : this.#failedTrials + 1;
    this.#open(nowMs, rules);
  }

  #score(nowMs: number, rules: BreakerRules): number {
    const window = this.#window;
    const { halfLifeMs, warmUpMs } = rules.rate;
    const usualPerSecond = this.#usual.perSecond(nowMs, halfLifeMs);
    const signals = {
      calls: window.calls(nowMs),
      perSecond: window.callsPerSecond(nowMs),
      usualPerSecond: this.#usual.learnedMs < warmUpMs ? null : usualPerSecond,
      failureShare: window.failureShare(nowMs),
      p95Ms: window.p95Ms(nowMs),
    };
    return scoreOf(signals, rules);
  }

  #open(nowMs: number, { probe }: BreakerRules): void {
    this.#openUntilMs = nowMs + probeWaitMs(this.#failedTrials, this.#parts.random(), probe);
    this.#move('open');
  }

  #move(state: BreakerState): void {
    this.#state = state;
    this.#era++;
    this.#parts.moved(state);
  }
}

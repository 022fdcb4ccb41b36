import type { BreakerRules } from './breaker-rules.js';
import { assertNever } from '../../core/errors.js';
import type { BreakerState } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import { CallWindow, LearnedRate } from './call-window.js';

/** Measurements of the calls to a dependency. */
export interface Signals {
  /** Number of calls in the window. */
  readonly calls: number;
  readonly perSecond: number;
  /** Null until enough has been learned. */
  readonly usualPerSecond: number | null;
  readonly failureShare: number;
  readonly p95Ms: number;
}

/** Combines all signals into a number, 0 if all is well. The breaker opens at `openAt`. */
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

/** Rises linearly from 0 at `from` to 1 at `to`. */
function along({ from, to }: { readonly from: number; readonly to: number }, value: number): number {
  return Math.min(1, Math.max(0, (value - from) / (to - from)));
}

/**
 * How long the breaker stays open before its next trial, ms.
 * @param failedTrials in a row; each doubles the wait, up to the cap
 * @param random 0 to 1; only shortens the wait, so the cap is never exceeded
 */
export function probeWaitMs(failedTrials: number, random: number, { firstMs, capMs, jitter }: BreakerRules['probe']) {
  return Math.min(capMs, firstMs * 2 ** failedTrials) * (1 - jitter * random);
}

interface BreakerParts {
  readonly rules: () => BreakerRules;
  readonly clock: Clock;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly moved: (to: BreakerState) => void;
  readonly refused: (mode: 'dry_run' | 'on') => void;
}

/** The result of `begin` while the layer is off. */
export const UNWATCHED = 0;
/** Minimum interval between two computations of the score. */
const SCORE_EVERY_MS = 100;

/**
 * The breaker of one dependency in one process. It refuses requests at admission, before any work. It only watches
 * calls under way, so no purchase is cut in two.
 *
 * A closed breaker opens when the score is high. After its wait it is half_open: it admits a few requests, and closes
 * if their calls succeed, or opens for longer. The breaker also follows the quorum of all processes, whose refusals do
 * not count as this process's state.
 */
export class AdaptiveBreaker {
  readonly #parts: BreakerParts;
  #state: BreakerState = 'closed';
  /** Rises with each change of state: a call from before says nothing about the state after it. */
  #era = 1;
  #window: CallWindow;
  readonly #usual: LearnedRate;
  #scoredMs = -Infinity;
  #closedMs = -Infinity;
  #openUntilMs = 0;
  /** Number of failed trials in a row, which determines the wait. */
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

  /** Returns the state according to this process's own calls, regardless of the quorum. */
  state(): BreakerState {
    this.#wake(this.#parts.clock.monotonicMs());
    return this.#state;
  }

  /** Called once per request that needs the dependency. In a trial, accepted requests count against `trial.calls`. */
  refuses(): boolean {
    const { mode, trial } = this.#parts.rules();
    if (mode === 'off') return false;
    if (!this.#isOpen(this.#parts.clock.monotonicMs(), trial)) return false;
    this.#parts.refused(mode);
    return mode === 'on';
  }

  /** Records the start of a call to the dependency. @returns the value for `end` */
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

  /** @param untilMs when the quorum's effect ends if reports can no longer be read */
  followQuorum(openForAll: boolean, untilMs: number): void {
    this.#openForAllUntilMs = openForAll ? untilMs : -Infinity;
  }

  /** Ends the wait: another process has closed its breaker, so the dependency may have recovered. */
  tryNow(): void {
    if (this.#state === 'open') this.#openUntilMs = this.#parts.clock.monotonicMs();
  }

  /** Starts again after the layer was switched off or on, because earlier calls say nothing about later ones. */
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

  /** Admits a request to the trial. Places become free after a while: a request may never reach the dependency. */
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

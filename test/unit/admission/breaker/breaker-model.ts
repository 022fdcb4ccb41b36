import type { BreakerRules } from '../../../../src/admission/breaker/breaker-rules.js';
import type { BreakerState } from '../../../../src/core/ports/admission-stores.js';

interface PastCall {
  readonly atMs: number;
  readonly failed: boolean;
  readonly latencyMs: number;
}

/**
 * A plain model of the breaker that keeps every call and recomputes everything from the list. Random numbers are 0.5.
 * The model learns no rate, because the rules of the test leave no time for it.
 */
export class BreakerModel {
  readonly #rules: BreakerRules;
  state: BreakerState = 'closed';
  moves = 0;
  #calls: PastCall[] = [];
  #scoredMs = -Infinity;
  #closedMs = -Infinity;
  #retryMs = 0;
  #doublings = 0;
  #roundMs = 0;
  #places = 0;
  #good = 0;
  #quorumUntilMs = -Infinity;

  constructor(rules: BreakerRules) {
    this.#rules = rules;
  }

  advance(nowMs: number): void {
    if (this.state !== 'open' || nowMs < this.#retryMs) return;
    this.#to('half_open');
    this.#roundMs = nowMs;
    this.#places = this.#rules.trial.calls;
    this.#good = 0;
  }

  refuses(nowMs: number): boolean {
    this.advance(nowMs);
    if (this.state === 'closed') return nowMs < this.#quorumUntilMs;
    if (this.state === 'open') return true;
    if (nowMs - this.#roundMs >= this.#rules.trial.waitMs) {
      this.#roundMs = nowMs;
      this.#places = this.#rules.trial.calls;
    }
    return this.#places-- <= 0;
  }

  /** @param beganMoves the number of transitions when the call began */
  end(nowMs: number, beganMoves: number, failed: boolean, latencyMs: number): void {
    this.advance(nowMs);
    if (beganMoves !== this.moves) return;
    if (this.state === 'half_open') return this.#tried(nowMs, !failed && latencyMs < this.#rules.latencyMs.to);
    this.#calls.push({ atMs: nowMs, failed, latencyMs });
    if (nowMs < this.#scoredMs + 100) return;
    this.#scoredMs = nowMs;
    if (this.#score(nowMs) < this.#rules.openAt) return;
    this.#doublings = nowMs - this.#closedMs >= this.#rules.probe.calmMs ? 0 : this.#doublings + 1;
    this.#open(nowMs);
  }

  quorum(untilMs: number): void {
    this.#quorumUntilMs = untilMs;
  }

  tryNow(nowMs: number): void {
    this.#retryMs = nowMs;
  }

  #tried(nowMs: number, wentWell: boolean): void {
    if (!wentWell) {
      this.#doublings++;
      return this.#open(nowMs);
    }
    this.#good++;
    if (this.#good < this.#rules.trial.calls) return;
    this.#closedMs = nowMs;
    this.#calls = [];
    this.#to('closed');
  }

  #open(nowMs: number): void {
    const { firstMs, capMs, jitter } = this.#rules.probe;
    let waitMs = firstMs;
    for (let doubling = 0; doubling < this.#doublings && waitMs < capMs; doubling++) waitMs *= 2;
    this.#retryMs = nowMs + Math.min(waitMs, capMs) * (1 - jitter / 2);
    this.#to('open');
  }

  #score(nowMs: number): number {
    const slotMs = this.#rules.windowMs / 10;
    const oldest = Math.floor(nowMs / slotMs) - 9;
    const live = this.#calls.filter(({ atMs }) => Math.floor(atMs / slotMs) >= oldest);
    if (live.length < this.#rules.callsMin) return 0;
    const failed = live.filter((call) => call.failed).length / live.length;
    const slowest = live.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b);
    const p95Ms = edgeAbove(slowest[Math.ceil(0.95 * live.length) - 1] as number);
    const { weights, failures, latencyMs } = this.#rules;
    return weights.failures * part(failed, failures) + weights.latency * part(p95Ms, latencyMs);
  }

  #to(state: BreakerState): void {
    this.state = state;
    this.moves++;
  }
}

function part(value: number, { from, to }: { readonly from: number; readonly to: number }): number {
  if (value <= from) return 0;
  return value >= to ? 1 : (value - from) / (to - from);
}

/** Rounds a latency up to its quarter of an octave. */
function edgeAbove(ms: number): number {
  let quarters = 0;
  while (0.25 * 2 ** (quarters / 4) < ms) quarters++;
  return 0.25 * 2 ** (quarters / 4);
}

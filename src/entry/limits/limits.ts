import type { LimitName, LimitSet, LimitVerdict } from '../../domain/limits.js';
import type { Clock } from '../../ports/clock.js';
import type { LimitLedger } from '../../ports/limit-ledger.js';
import type { LimitMeters } from '../../ports/limit-meters.js';
import type { Log } from '../../ports/log.js';
import type { Endpoint } from '../endpoint.js';
import { addressKey } from './address-key.js';
import { LeakyBucket } from './leaky-bucket.js';
import { LedgerOrLocal } from './ledger-or-local.js';
import type { LimitsRules } from './limits-rules.js';
import { LocalLimitLedger } from './local-limit-ledger.js';
import { rateLimitHeaders } from './rate-limit-headers.js';
import { TakeTogether } from './take-together.js';

export interface LimitsParts {
  /** Read at each call. */
  readonly rules: () => LimitsRules;
  /** What all processes count in. */
  readonly ledger: LimitLedger;
  /** Steady. */
  readonly clock: Clock;
  readonly meters: LimitMeters;
  readonly log: Log;
}

/** Who comes: the address of the client, and the user where there is one. */
export interface Visitor {
  readonly address: string | null;
  readonly userId: string | null;
}

/** What the limits say of a visit that they looked at. */
export interface LimitAnswer {
  /** Null: let it through. */
  readonly refusal: { readonly word: 'rate_limited'; readonly retryAfterMs: number } | null;
  /** For the answer, refused or not: a flat list of names and values. */
  readonly headers: readonly string[];
}

const PASSED: LimitAnswer = { refusal: null, headers: [] };

/** How fast, in all, by each user and from each address. */
export class Limits {
  readonly #parts: LimitsParts;
  readonly #together: TakeTogether;
  readonly #leaky: LeakyBucket;

  constructor(parts: LimitsParts) {
    const { ledger: shared, clock, meters, log } = parts;
    this.#parts = parts;
    const local = new LocalLimitLedger(clock);
    this.#together = new TakeTogether(
      new LedgerOrLocal({ shared, local, clock, meters, log }, () => this.#parts.rules()),
      meters,
    );
    this.#leaky = new LeakyBucket(clock);
  }

  /** Counts one visit. Null: no limit holds there. Rejects with a bug only: without Redis the process counts by itself. */
  enter(endpoint: Endpoint, visitor: Visitor): null | Promise<LimitAnswer> {
    const rules = this.#parts.rules();
    if (rules.mode === 'off') return null;
    const limits = rules[endpoint];
    if (limits.ip === null && limits.user === null && limits.global === null) return null;
    return this.#take(endpoint, limits, visitor, rules.mode);
  }

  async #take(endpoint: Endpoint, limits: LimitSet, visitor: Visitor, mode: 'dry_run' | 'on'): Promise<LimitAnswer> {
    const address = visitor.address === null || limits.ip === null ? null : addressKey(visitor.address);
    const verdict = await this.#together.take(endpoint, limits, { address, userId: visitor.userId });
    if (verdict.outcome === 'rate_limited') this.#parts.meters.refused(endpoint, nameOf(verdict), mode);
    if (mode === 'dry_run') return PASSED;
    const { outcome, retryAfterMs } = verdict;
    const refusal = outcome === 'rate_limited' ? ({ word: outcome, retryAfterMs } as const) : null;
    return { refusal, headers: rateLimitHeaders(limits, verdict) };
  }

  /** Before the batcher: null: go on; a promise: go on when it resolves; else refused. */
  smooth(): null | Promise<void> | { readonly word: 'rate_limited'; readonly retryAfterMs: number } {
    const { mode, leaky } = this.#parts.rules();
    if (mode === 'off' || leaky === null) return null;
    const entered = this.#leaky.enter(leaky);
    if (entered === null || entered instanceof Promise) return mode === 'on' ? entered : null;
    this.#parts.meters.refused('purchase', 'leaky', mode);
    return mode === 'on' ? { word: 'rate_limited', retryAfterMs: entered.retryAfterMs } : null;
  }
}

const nameOf = ({ limit }: LimitVerdict): LimitName => limit ?? 'global';

import { OperationalError } from '../core/errors.js';
import { toNextTick } from '../core/job.js';
import { OutageLog } from '../core/outage-log.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { Revocation, RevocationRepository } from '../core/ports/revocations.js';

/** Every api follows a revocation well within a second. A read only looks at the end of a primary key. */
const POLL_MS = 500;
/** Number of revocations per read. If there are more, it takes several reads. */
const PAGE = 1000;
/** Interval at which expired revocations are forgotten. */
const FORGET_MS = 60_000;

/** The largest expected difference between MySQL's clock and ours. Revocations are kept longer by this much. */
const SLACK_MS = 600_000;

interface RevocationsParts {
  readonly repository: RevocationRepository;
  readonly clock: Clock;
  readonly log: Log;
  /** Maximum lifetime of a token, ms. Then a revocation is useless. */
  readonly lifeMaxMs: number;
}

/** The properties of a token by which a revocation is found. */
export interface RevocableToken {
  readonly userId: string;
  /** Claim `jti`, or null. */
  readonly tokenId: string | null;
  /** Claim `iat`, Unix ms, or null. */
  readonly issuedAtMs: number | null;
}

/**
 * The revocations in force, in memory. They are stored in MySQL, which is polled: cheaper than a correct copy in Redis.
 * While MySQL is down, known revocations stay in force, and no token can be revoked.
 */
export class Revocations {
  readonly #parts: RevocationsParts;
  readonly #outage: OutageLog;
  readonly #byUser = new Map<string, { readonly issuedBeforeMs: number; readonly endsAtMs: number }>();
  readonly #byToken = new Map<string, { readonly endsAtMs: number }>();
  #read = 0;
  #forgottenMs = -Infinity;

  constructor(parts: RevocationsParts) {
    this.#parts = parts;
    this.#outage = new OutageLog(parts.log, {
      begins: 'could not read token revocations; the known ones stay in force',
      ends: 'token revocations can be read again',
    });
  }

  /** Returns whether a token is revoked. Synchronous, because it is called for every request. */
  isRevoked(token: RevocableToken): boolean {
    if (token.tokenId !== null && this.#byToken.has(token.tokenId)) return true;
    const ofUser = this.#byUser.get(token.userId);
    return ofUser !== undefined && (token.issuedAtMs ?? -Infinity) < ofUser.issuedBeforeMs;
  }

  /** Reads all revocations before buyers come. @throws OperationalError mysql */
  async start(): Promise<void> {
    await this.#readNew();
  }

  /** Follows new revocations until the signal aborts. Rejects only for a bug. */
  async poll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.runOnce();
      await toNextTick(this.#parts.clock, POLL_MS, signal);
    }
  }

  /** Rejects only for a bug. */
  async runOnce(): Promise<void> {
    const { clock } = this.#parts;
    try {
      await this.#readNew();
      this.#outage.end();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#outage.failed(error);
    }
    if (clock.monotonicMs() - this.#forgottenMs < FORGET_MS) return;
    this.#forgottenMs = clock.monotonicMs();
    for (const map of [this.#byUser, this.#byToken]) {
      for (const [name, { endsAtMs }] of map) if (endsAtMs <= clock.nowMs()) map.delete(name);
    }
  }

  async #readNew(): Promise<void> {
    for (;;) {
      const { repository, lifeMaxMs } = this.#parts;
      const found = await repository.after(this.#read, lifeMaxMs + SLACK_MS, PAGE);
      for (const one of found) this.#take(one);
      if (found.length < PAGE) return;
    }
  }

  /** Applies a revocation. If a user has two, the later time counts, no matter which arrives first. */
  #take(one: Revocation): void {
    this.#read = one.number;
    const endsAtMs = one.atMs + this.#parts.lifeMaxMs + SLACK_MS;
    if ('tokenId' in one) return void this.#byToken.set(one.tokenId, { endsAtMs });
    const before = this.#byUser.get(one.userId);
    if (before !== undefined && before.issuedBeforeMs >= one.issuedBeforeMs) return;
    this.#byUser.set(one.userId, { issuedBeforeMs: one.issuedBeforeMs, endsAtMs });
  }
}

import { OperationalError } from '../../../src/core/errors.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { NewRevocation, Revocation, RevocationRepository } from '../../../src/core/ports/revocations.js';

/** Revocations in memory. */
export class MemoryRevocationRepository implements RevocationRepository {
  /** While true, every call fails as if MySQL were down. */
  down = false;
  readonly audited: AuditEntry[] = [];
  readonly #stored: Revocation[] = [];
  readonly #nowMs: () => number;

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  async add(revocation: NewRevocation, actor: string): Promise<Revocation> {
    this.#failIfDown();
    const number = this.#stored.length + 1;
    const stored = { ...revocation, number, actor, atMs: this.#nowMs() };
    this.#stored.push(stored);
    const after =
      'tokenId' in revocation
        ? revocation
        : { userId: revocation.userId, issuedBefore: new Date(revocation.issuedBeforeMs).toISOString() };
    this.audited.push({ actor, action: 'tokens.revoked', subject: `revocation:${number}`, before: null, after });
    return stored;
  }

  async after(number: number, lifeMs: number, max: number): Promise<Revocation[]> {
    this.#failIfDown();
    const isKept = (one: Revocation): boolean => one.number > number && one.atMs > this.#nowMs() - lifeMs;
    return this.#stored.filter(isKept).slice(0, max);
  }

  async newest(max: number, before = Infinity): Promise<Revocation[]> {
    this.#failIfDown();
    return this.#stored
      .filter(({ number }) => number < before)
      .toReversed()
      .slice(0, max);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('mysql', 'mysql is away', { retryable: true });
  }
}

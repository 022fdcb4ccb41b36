import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { CachedSnapshot, SaleSnapshotCache } from '../../../src/core/ports/sale-repository.js';

/** The shared cache of sale snapshots in memory. Snapshots and locks expire with the clock. */
export class MemorySaleSnapshotCache implements SaleSnapshotCache {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #snapshots = new Map<string, { sale: Sale | null; untilMs: number }>();
  readonly #lockedUntilMs = new Map<string, number>();
  /** While true, every call fails as if Redis were down. */
  down = false;
  reads = 0;

  constructor(clock: Clock, options: { readonly ttlMs: number }) {
    this.#clock = clock;
    this.#ttlMs = options.ttlMs;
  }

  async read(saleId: string): Promise<CachedSnapshot> {
    this.#failIfDown();
    this.reads++;
    const snapshot = this.#snapshots.get(saleId);
    if (snapshot === undefined || snapshot.untilMs <= this.#clock.nowMs()) return { cached: 'missing' };
    return snapshot.sale === null ? { cached: 'absent' } : { cached: 'ready', sale: snapshot.sale };
  }

  async lock(saleId: string, holdMs: number): Promise<boolean> {
    this.#failIfDown();
    const nowMs = this.#clock.nowMs();
    if ((this.#lockedUntilMs.get(saleId) ?? 0) > nowMs) return false;
    this.#lockedUntilMs.set(saleId, nowMs + holdMs);
    return true;
  }

  async write(saleId: string, sale: Sale | null): Promise<void> {
    this.#failIfDown();
    this.#snapshots.set(saleId, { sale, untilMs: this.#clock.nowMs() + this.#ttlMs });
    this.#lockedUntilMs.delete(saleId);
  }

  async forget(saleId: string): Promise<void> {
    this.#failIfDown();
    this.#snapshots.delete(saleId);
  }

  #failIfDown(): void {
    if (this.down) throw new OperationalError('redis', 'memory snapshot cache is down', { retryable: true });
  }
}

import { splitPurchaseKey } from '../../../src/core/purchase.js';
import { setTimeout as sleep } from 'node:timers/promises';
import { GrantedTime } from '../../../deploy/local/stack/granted-time.js';
import { waitUntil } from '../../../deploy/local/stack/probes.js';
import type { Sale } from '../../../src/core/sale.js';
import { createRepairStore } from '../../../src/redis/repair-store.js';
import { bucketKeys } from '../../../src/redis/keys.js';
import { expectAtMost } from './expect.js';
import type { StackControls } from './stack-controls.js';

/** Short enough to report tenths of a second, because each check is a few cheap reads. */
const EVERY_MS = 250;
/** Number of buyers in one statement. */
const BUYERS_PER_QUERY = 500;

/** A sale of a scenario, and the purchases (`userId/requestId`) that were answered 2xx before its fault ended. */
interface Watched {
  readonly sale: Sale;
  readonly accepted: ReadonlySet<string>;
}

/**
 * Measures when the sales of a scenario have recovered from its fault: no bucket is locked, no older batch is pending,
 * no release is due, every accepted purchase has its row and, without newer load, Redis and MySQL agree. Ignores
 * purchases after the end of the fault.
 */
export class RecoveryWatch {
  readonly endedMs = Date.now();
  /** Time that a busy machine took from the recovery does not count towards the limit. */
  readonly #sinceEnd = new GrantedTime();
  readonly #stack: StackControls;
  readonly #watched: ReadonlyMap<string, Watched>;
  /** Sale id → purchases whose row was not found yet. */
  readonly #missing: ReadonlyMap<string, Set<string>>;
  readonly #recovered = new Map<string, { readonly atMs: number; readonly grantedMs: number }>();
  #stopped = false;

  constructor(stack: StackControls, sales: readonly Watched[]) {
    this.#stack = stack;
    this.#watched = new Map(sales.map((one) => [one.sale.saleId, one]));
    this.#missing = new Map(sales.map(({ sale, accepted }) => [sale.saleId, new Set(accepted)]));
    void this.#watch();
  }

  /** Time until the last sale had recovered. Null until then. */
  get recoveryMs(): number | null {
    const all = this.#recoveredOf([...this.#watched.keys()]);
    return all && Math.max(this.endedMs, ...all.map(({ atMs }) => atMs)) - this.endedMs;
  }

  /**
   * Waits until these sales have recovered. @param maxMs granted time @throws if the last one took longer, from the end
   * of the fault
   */
  async within(maxMs: number, saleIds: readonly string[] = [...this.#watched.keys()]): Promise<void> {
    const haveRecovered = (): boolean => this.#recoveredOf(saleIds) !== null;
    if (!(await waitUntil(haveRecovered, { timeoutMs: maxMs, everyMs: EVERY_MS }))) {
      throw new Error(`not every sale has recovered after ${maxMs} ms of granted time`);
    }
    const tookMs = Math.max(0, ...(this.#recoveredOf(saleIds) ?? []).map(({ grantedMs }) => grantedMs));
    expectAtMost(tookMs, maxMs, 'ms from the end of the fault until recovery');
  }

  /** @returns null while a sale has not recovered */
  #recoveredOf(saleIds: readonly string[]) {
    const ends = saleIds.flatMap((saleId) => this.#recovered.get(saleId) ?? []);
    return ends.length < saleIds.length ? null : ends;
  }

  stop(): void {
    this.#stopped = true;
  }

  async #watch(): Promise<void> {
    while (!this.#stopped && this.recoveryMs === null) {
      for (const [saleId, { sale }] of this.#watched) {
        if (this.#recovered.has(saleId)) continue;
        const hasRecovered = await this.#hasRecovered(sale).catch(() => false); // a server may still be down
        if (hasRecovered) this.#recovered.set(saleId, { atMs: Date.now(), grantedMs: this.#sinceEnd.readMs() });
      }
      this.#sinceEnd.readMs(); // takes a reading after each pause, because it averages over running threads
      await sleep(EVERY_MS);
    }
  }

  async #hasRecovered(sale: Sale): Promise<boolean> {
    const { redis, audit } = this.#stack;
    const { saleId } = sale;
    const refs = Array.from({ length: sale.buckets }, (_, bucket) => ({ saleId, bucket }));
    const standings = await createRepairStore(redis).statusOf(refs);
    if (standings.some(({ state, sameServer }) => state === null || state === 'repair' || !sameServer)) return false;
    const keys = refs.map(bucketKeys);
    const old = await Promise.all(keys.map(({ pending }) => redis.redis.zcount(pending, '-inf', this.endedMs)));
    if (old.some((count) => count > 0) || (await audit.repository.undoneReleases(saleId)) > 0) return false;
    if (!(await this.#everyRowIsThere(saleId))) return false;
    const newer = await Promise.all(keys.map(({ pending }) => redis.redis.zcard(pending)));
    return newer.some((count) => count > 0) || (await this.#unitsAgree(saleId, keys));
  }

  async #everyRowIsThere(saleId: string): Promise<boolean> {
    const missing = this.#missing.get(saleId) ?? new Set();
    const some = [...missing].slice(0, BUYERS_PER_QUERY);
    if (some.length === 0) return true;
    const users = [...new Set(some.map((key) => splitPurchaseKey(key).userId))];
    const rows = await this.#stack.mysql.query<{ user_id: string; request_id: string }>(
      'SELECT user_id, request_id FROM orders WHERE sale_id = ? AND user_id IN (?)',
      [saleId, users],
    );
    for (const { user_id: userId, request_id: requestId } of rows) missing.delete(`${userId}/${requestId}`);
    // read the next sales at once, unless one of these is still missing
    return some.every((key) => !missing.has(key)) && this.#everyRowIsThere(saleId);
  }

  /** Returns whether every unit is sold or for sale. */
  async #unitsAgree(saleId: string, keys: readonly { readonly stock: string }[]): Promise<boolean> {
    const left = await Promise.all(keys.map(({ stock }) => this.#stack.redis.redis.get(stock)));
    const sale = await this.#stack.audit.repository.findSale(saleId);
    return sale !== null && sale.stock - sale.sold === left.reduce((sum, units) => sum + Number(units), 0);
  }
}

import type { ApiError } from '../api/api-error.js';
import type { LiveSale, Snapshot } from '../api/types.js';
import { Store } from './store.js';

/** Seconds that the small charts show. */
export const SECONDS_KEPT = 90;
/** Figures are marked as stale after this time without a snapshot. The pause between two streams is shorter. */
export const STALE_AFTER_MS = 5_000;

/** Data of a small chart: a value for each second, null if unknown, the newest last. */
export interface Rates {
  readonly accepted: readonly (number | null)[];
  readonly landed: readonly (number | null)[];
  readonly refused: readonly (number | null)[];
}

export interface LiveState {
  /** Null before the first snapshot. */
  readonly snapshot: Snapshot | null;
  /** When the snapshot arrived, ms on the monotonic clock. */
  readonly receivedMs: number;
  readonly connection: 'connecting' | 'open' | 'lost';
  /** Why the connection is lost, or null if it is not. */
  readonly trouble: ApiError | null;
}

interface SecondOfSale {
  readonly atMs: number;
  readonly accepted: number | null;
  readonly landed: number | null;
  readonly refused: number | null;
}

/** Holds the newest snapshot, and the rates of the last seconds by sale. */
export class LiveStore {
  readonly state = new Store<LiveState>({ snapshot: null, receivedMs: 0, connection: 'connecting', trouble: null });
  readonly #seconds = new Map<string, SecondOfSale[]>();

  /** @param nowMs on the monotonic clock */
  take(snapshot: Snapshot, nowMs: number): void {
    for (const sale of snapshot.sales) this.#remember(sale, snapshot.atMs);
    const shown = new Set(snapshot.sales.map(({ saleId }) => saleId));
    for (const [saleId, seconds] of this.#seconds) {
      const lastMs = seconds.at(-1)?.atMs ?? 0;
      if (!shown.has(saleId) && snapshot.atMs - lastMs > SECONDS_KEPT * 1000) this.#seconds.delete(saleId);
    }
    this.state.set({ snapshot, receivedMs: nowMs, connection: 'open', trouble: null });
  }

  connecting(): void {
    const { state } = this;
    if (state.value.connection !== 'lost') state.set({ ...state.value, connection: 'connecting' });
  }

  lost(trouble: ApiError): void {
    this.state.set({ ...this.state.value, connection: 'lost', trouble });
  }

  /** Forgets everything, because another person may sign in. */
  clear(): void {
    this.#seconds.clear();
    this.state.set({ snapshot: null, receivedMs: 0, connection: 'connecting', trouble: null });
  }

  /** @param saleId null: all sales together */
  rates(saleId: string | null): Rates {
    const endMs = this.#newestSecondMs();
    const bySecond = new Map<number, SecondOfSale>();
    const lists = saleId === null ? [...this.#seconds.values()] : [this.#seconds.get(saleId) ?? []];
    for (const second of lists.flat()) {
      const before = bySecond.get(second.atMs);
      bySecond.set(second.atMs, before === undefined ? second : sum(before, second));
    }
    const places = Array.from({ length: SECONDS_KEPT }, (_, index) => endMs - (SECONDS_KEPT - 1 - index) * 1000);
    const of = (rate: 'accepted' | 'landed' | 'refused') => places.map((atMs) => bySecond.get(atMs)?.[rate] ?? null);
    return { accepted: of('accepted'), landed: of('landed'), refused: of('refused') };
  }

  #newestSecondMs(): number {
    return Math.max(0, ...[...this.#seconds.values()].map((seconds) => seconds.at(-1)?.atMs ?? 0));
  }

  #remember(sale: LiveSale, atMs: number): void {
    const seconds = this.#seconds.get(sale.saleId) ?? [];
    const secondMs = sale.secondAtMs ?? Math.floor(atMs / 1000) * 1000;
    if ((seconds.at(-1)?.atMs ?? 0) >= secondMs) return; // two snapshots of the same second
    seconds.push({
      atMs: secondMs,
      accepted: sale.acceptedPerSecond,
      landed: sale.landedPerSecond,
      refused: refusedIn(sale),
    });
    while (seconds[0] !== undefined && seconds[0].atMs <= secondMs - SECONDS_KEPT * 1000) seconds.shift();
    this.#seconds.set(sale.saleId, seconds);
  }
}

/** Returns the refusals of all codes together, or null if unknown. */
export const refusedIn = ({ refusedPerSecond }: Pick<LiveSale, 'refusedPerSecond'>): number | null =>
  refusedPerSecond === null ? null : Object.values(refusedPerSecond).reduce((all, count) => all + count, 0);

const sum = (one: SecondOfSale, other: SecondOfSale): SecondOfSale => ({
  atMs: one.atMs,
  accepted: plus(one.accepted, other.accepted),
  landed: plus(one.landed, other.landed),
  refused: plus(one.refused, other.refused),
});
const plus = (a: number | null, b: number | null): number | null =>
  a === null && b === null ? null : (a ?? 0) + (b ?? 0);

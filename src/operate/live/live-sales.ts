import type { LiveSale } from '../../contract/live.js';
import { askedBucketsOf } from '../../core/bucket.js';
import { OperationalError } from '../../core/errors.js';
import type { AnswerCounts, AnswerHistory } from '../../core/ports/answer-history.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import type { Clock } from '../../core/ports/clock.js';
import type { SaleRepository } from '../../core/ports/sale-repository.js';
import type { StockStore, StoredSale } from '../../core/ports/stock-store.js';
import { LIVE_STATES, type Sale } from '../../core/sale.js';
import { heldUnits, unitsLeftIn } from '../../sales/sale-units.js';
import type { LandedOrders } from './landed-orders.js';

/** Maximum number of sales shown, busiest first. */
export const LIVE_SALES_MAX = 20;
/** Maximum number of sales per list. If more are live, only busy and new ones are counted. */
const LISTED_MAX = 100;
/** Maximum number of buckets per read. The other sales keep their previous figures, in turns. */
const BUCKETS_PER_LOOK = 64;
/** Rates apply to the second this long ago, ms. By now all answers and orders of that second are in. */
const SECOND_AGO_MS = 2000;
/** Period over which sales are ranked by how busy they are, ms. */
const BUSY_MS = 10_000;

type SaleNow = Omit<LiveSale, 'waiting'>;

/** The figures of a sale in Redis. A figure is null if it could not be read. */
interface Figures {
  readonly readMs: number;
  readonly left: number | null;
  readonly inRepair: boolean;
  readonly pending: number | null;
  readonly pendingOldestMs: number | null;
}

export interface LiveSalesPorts {
  readonly sales: SaleRepository;
  readonly stock: StockStore;
  readonly batches: BatchStore;
  readonly answers: AnswerHistory;
  readonly landed: LandedOrders;
  readonly clock: Clock;
}

/** Answers that are not refusals. */
const ACCEPTED = 'accepted';
const REPEATED = 'replayed';

/** Null if unknown. @param heard by second, or null if it could not be read */
export function answersAt(heard: ReadonlyMap<number, AnswerCounts | null> | null, atMs: number): AnswerCounts | null {
  const counts = heard === null ? null : heard.get(atMs);
  return counts === undefined ? {} : counts;
}

export const acceptedOf = (counts: AnswerCounts): number => counts[ACCEPTED] ?? 0;

export function refusalsOf({ [ACCEPTED]: _accepted, [REPEATED]: _repeated, ...refused }: AnswerCounts): AnswerCounts {
  return refused;
}

export class LiveSales {
  readonly #ports: LiveSalesPorts;
  #figures = new Map<string, Figures>();

  constructor(ports: LiveSalesPorts) {
    this.#ports = ports;
  }

  /** Never throws because of a server. `missing` has a sentence for each failure. */
  async look(): Promise<{
    readonly sales: readonly SaleNow[];
    readonly moreSales: number;
    readonly missing: readonly string[];
  }> {
    const missing = new Set<string>();
    const known = async <T>(reading: Promise<T>): Promise<T | null> => {
      try {
        return await reading;
      } catch (error) {
        if (!(error instanceof OperationalError)) throw error;
        missing.add(error.message);
        return null;
      }
    };
    const { answers, landed, clock } = this.#ports;
    const secondAtMs = Math.floor(clock.nowMs() / 1000) * 1000 - SECOND_AGO_MS;
    const second = [secondAtMs, secondAtMs + 1000] as const;
    const busy = await known(answers.busy(second[1] - BUSY_MS, second[1]));
    const all = (await known(this.#alive(busy ?? new Map()))) ?? [];
    const shown = all.slice(0, LIVE_SALES_MAX);
    const ids = shown.map(({ saleId }) => saleId);
    const [heard, ordered] = await Promise.all([
      busy === null ? null : known(Promise.all(ids.map((saleId) => answers.read(saleId, ...second)))),
      known(landed.bySale(ids, ...second)),
    ]);
    await this.#readFigures(shown, known);
    const sales = shown.map((sale, index) => {
      const counts = answersAt(heard?.[index] ?? null, secondAtMs);
      return {
        ...saleOf(sale, this.#figures.get(sale.saleId) ?? UNREAD),
        secondAtMs: heard === null && ordered === null ? null : secondAtMs,
        acceptedPerSecond: counts === null ? null : acceptedOf(counts),
        landedPerSecond: ordered === null ? null : (ordered.get(sale.saleId) ?? 0),
        refusedPerSecond: counts === null ? null : refusalsOf(counts),
      };
    });
    return { sales, moreSales: all.length - shown.length, missing: [...missing] };
  }

  /** Lists the busiest first. Idle sales follow: the last opened, then the next to open. */
  async #alive(busy: ReadonlyMap<string, number>): Promise<Sale[]> {
    const { sales } = this.#ports;
    const listed = await sales.list({ states: LIVE_STATES, max: LISTED_MAX });
    const names = new Set(listed.map(({ saleId }) => saleId));
    for (const saleId of busy.keys()) {
      const sale = names.has(saleId) || listed.length < LISTED_MAX ? null : await sales.find(saleId);
      if (sale !== null && sale.state !== 'draft' && sale.state !== 'closed') listed.push(sale);
    }
    const ranks = { open: 0, paused: 1, warm: 2, draft: 3, closed: 3 } as const;
    return listed.sort(
      (one, other) =>
        (busy.get(other.saleId) ?? 0) - (busy.get(one.saleId) ?? 0) ||
        ranks[one.state] - ranks[other.state] ||
        (one.state === 'warm' ? one.opensAtMs - other.opensAtMs : other.opensAtMs - one.opensAtMs),
    );
  }

  async #readFigures(shown: readonly Sale[], known: <T>(reading: Promise<T>) => Promise<T | null>): Promise<void> {
    const before = this.#figures;
    this.#figures = new Map(shown.flatMap(({ saleId }) => (before.has(saleId) ? [[saleId, before.get(saleId)!]] : [])));
    const readMs = ({ saleId }: Sale): number => before.get(saleId)?.readMs ?? -Infinity;
    let buckets = 0;
    const due: Sale[] = [];
    for (const sale of [...shown].sort((one, other) => readMs(one) - readMs(other))) {
      buckets += sale.buckets;
      if (due.length > 0 && buckets > BUCKETS_PER_LOOK) break;
      due.push(sale);
    }
    await Promise.all(due.map(async (sale) => this.#figures.set(sale.saleId, await this.#figuresOf(sale, known))));
  }

  async #figuresOf(sale: Sale, known: <T>(reading: Promise<T>) => Promise<T | null>): Promise<Figures> {
    const { stock, batches, clock } = this.#ports;
    const refs = askedBucketsOf(sale);
    const [stored, summaries] = await Promise.all([
      known(Promise.all(refs.map((ref) => stock.readSale(ref)))),
      known(Promise.all(refs.map((ref) => batches.pendingSummary(ref)))),
    ]);
    const pending = summaries?.reduce((sum, summary) => sum + summary.batches, 0) ?? null;
    return {
      readMs: clock.monotonicMs(),
      left: stored === null ? null : unitsLeftIn(stored),
      inRepair: stored?.some((bucket) => isInRepair(sale, bucket)) ?? false,
      pending,
      pendingOldestMs: pending ? Math.max(...(summaries ?? []).map(({ oldestMs }) => oldestMs)) : null,
    };
  }
}

const UNREAD: Figures = { readMs: 0, left: null, inRepair: false, pending: null, pendingOldestMs: null };

/** Buckets may be missing while a sale is being warmed. */
const isInRepair = ({ state }: Sale, bucket: StoredSale | null): boolean =>
  bucket === null ? state !== 'warm' : bucket.state === 'repair';

function saleOf(
  { saleId, title, sku, state, stock, sold, buckets, opensAtMs, closesAtMs }: Sale,
  { left, inRepair, pending, pendingOldestMs }: Figures,
): Omit<SaleNow, 'secondAtMs' | 'acceptedPerSecond' | 'landedPerSecond' | 'refusedPerSecond'> {
  return {
    saleId,
    title,
    sku,
    state: inRepair ? 'repair' : (state as SaleNow['state']),
    stock,
    sold,
    held: left === null ? null : heldUnits({ stock, sold }, left),
    left,
    buckets,
    opensAtMs,
    closesAtMs,
    pending,
    pendingOldestMs,
  };
}

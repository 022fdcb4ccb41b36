import { bucketName, type HomeBucket, openTransfers, unitsInTransit, type SaleBuckets } from '../../core/bucket.js';
import type { TransferStore } from '../../core/ports/transfer-store.js';
import { countUnitsLeft, finishTransfer, readStock, type StockReading, unitsIn } from './read-stock.js';

export interface WantedUnits {
  /** Units of the smallest purchase. Fewer are of no use. */
  readonly least: number;
  /** Units of all purchases together. */
  readonly all: number;
}

/** Attempts, because other processes may be faster. After the last, the next precheck gives the answer. */
const TRIES_MAX = 3;

/**
 * - `gathered`: the bucket had at least `least` units, but others may have taken them; try again
 * - `counted`: all buckets together have fewer than `least`; no units moved
 * - `unsure`: a bucket is not loaded, in repair or needs repair
 * - `moving`: units moved between the buckets during every count; try again
 */
export type Gathered =
  | { readonly outcome: 'gathered' | 'unsure' | 'moving' }
  | { readonly outcome: 'counted'; readonly unitsLeft: number };

/**
 * Fetches units for a bucket, from the fullest buckets first, until it has enough or all were asked. If this process
 * dies, another one finishes the open transfer.
 * @throws OperationalError redis; units in transit arrive later
 */
export async function gatherUnits(home: HomeBucket, wanted: WantedUnits, store: TransferStore): Promise<Gathered> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const reading = await readStock(home, store);
    if (reading === null) return { outcome: 'unsure' };
    if (isEnough(reading, wanted) && (await askAll(home, reading, wanted, store)) >= wanted.least) break;
    const unitsLeft = await countUnitsLeft(home, store);
    if (typeof unitsLeft === 'string') return { outcome: unitsLeft };
    if (unitsLeft < wanted.least) return { outcome: 'counted', unitsLeft };
  }
  return { outcome: 'gathered' };
}

/** If all units together are not enough, none move, so other purchases find them where they are. */
const isEnough = (reading: StockReading, { least }: WantedUnits): boolean =>
  unitsIn(reading) + unitsInTransit(reading.buckets) >= least;

/** @returns units left in the bucket in the end */
async function askAll(
  home: HomeBucket,
  reading: StockReading,
  wanted: WantedUnits,
  store: TransferStore,
): Promise<number> {
  let have = await receive(home, reading, store);
  for (const bucket of sourcesFor(home, reading)) {
    if (have >= wanted.all) break;
    const least = Math.max(1, wanted.least - have);
    const out = await store.transferOut({ saleId: home.saleId, bucket }, home.bucket, reading.epoch, least);
    if (out.outcome !== 'transferred') continue;
    const transfer = { from: bucket, to: home.bucket, seq: out.seq, units: out.units };
    have = (await finishTransfer(home.saleId, transfer, reading.epoch, store)) ?? have;
  }
  return have;
}

/** Finishes transfers on their way to the bucket. @returns units left in that bucket */
async function receive(home: HomeBucket, { epoch, buckets }: StockReading, store: TransferStore): Promise<number> {
  let have = buckets[home.bucket]?.unitsLeft ?? 0;
  for (const transfer of openTransfers(buckets)) {
    if (transfer.to !== home.bucket) continue;
    have = (await finishTransfer(home.saleId, transfer, epoch, store)) ?? have;
  }
  return have;
}

/** Returns the other buckets with units, fullest first. */
function sourcesFor(home: HomeBucket, { buckets }: StockReading): number[] {
  return buckets
    .map(({ unitsLeft }, bucket) => ({ unitsLeft, bucket }))
    .filter(({ unitsLeft, bucket }) => unitsLeft > 0 && bucket !== home.bucket)
    .sort((a, b) => b.unitsLeft - a.unitsLeft)
    .map(({ bucket }) => bucket);
}

/** Fetches units for the buckets of this process, with one fetch at a time per bucket. */
export class UnitFetcher {
  readonly #store: TransferStore;
  readonly #underWay = new Map<string, Promise<Gathered>>();

  constructor(store: TransferStore) {
    this.#store = store;
  }

  /**
   * Shares a fetch that is under way, if it gathers units. If it gathers none, the result may be outdated, so the call
   * waits for a fetch that began later.
   * @throws OperationalError redis
   */
  async fetch(home: HomeBucket, wanted: WantedUnits): Promise<Gathered> {
    const name = bucketName(home);
    const earlier = this.#underWay.get(name);
    if (earlier !== undefined) {
      const gathered = await earlier.catch(() => null); // its own caller gets the error
      if (gathered?.outcome === 'gathered') return gathered;
    }
    let fetch = this.#underWay.get(name);
    if (fetch === undefined) {
      fetch = gatherUnits(home, wanted, this.#store).finally(() => this.#underWay.delete(name));
      this.#underWay.set(name, fetch);
    }
    return fetch;
  }

  /** Returns null if the units cannot be counted now. @throws OperationalError redis */
  async count(sale: SaleBuckets): Promise<number | null> {
    const counted = await countUnitsLeft(sale, this.#store);
    return typeof counted === 'string' ? null : counted;
  }
}

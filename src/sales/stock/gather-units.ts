import { type HomeBucket, openTransfers, unitsInTransit } from '../../core/bucket.js';
import type { TransferStore } from '../../core/ports/transfer-store.js';
import {
  countUnitsLeft,
  finishTransfer,
  lookAtSale,
  type SaleBuckets,
  type SaleLook,
  unitsIn,
} from './look-at-sale.js';

/** Units that the buyers of a bucket ask for and do not find there. */
export interface WantedUnits {
  /** Of the smallest purchase: with fewer nobody is helped. */
  readonly least: number;
  /** Of all of them. */
  readonly all: number;
}

/** Others may be faster each time; then the next precheck says what there is. */
const TRIES_MAX = 3;

/**
 * - `gathered`: the bucket had at least `least` units, or others took them: try again
 * - `counted`: all buckets together have fewer than `least`; what there is stays where it is now
 * - `unsure`: a bucket is not loaded, in repair or in need of it
 * - `moving`: units moved between the buckets each time that they were counted; ask again
 */
export type Gathered =
  { readonly outcome: 'gathered' | 'unsure' | 'moving' } | { readonly outcome: 'counted'; readonly unitsLeft: number };

/**
 * Fetches units for a bucket that has too few, from those that have most, until there are enough for all who ask or each
 * of them was asked. A death at any point leaves a transfer that whoever finds it brings to its end.
 * @throws OperationalError redis; units that were on their way arrive later
 */
export async function gatherUnits(home: HomeBucket, wanted: WantedUnits, store: TransferStore): Promise<Gathered> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const look = await lookAtSale(home, store);
    if (look === null) return { outcome: 'unsure' };
    if (isEnough(look, wanted) && (await askAll(home, look, wanted, store)) >= wanted.least) break;
    const unitsLeft = await countUnitsLeft(home, store);
    if (typeof unitsLeft === 'string') return { outcome: unitsLeft };
    if (unitsLeft < wanted.least) return { outcome: 'counted', unitsLeft };
  }
  return { outcome: 'gathered' };
}

/** Where all units together help nobody none is moved: others would miss them where they are. */
const isEnough = (look: SaleLook, { least }: WantedUnits): boolean =>
  unitsIn(look) + unitsInTransit(look.buckets) >= least;

/** @returns units left in the bucket after each of the others was asked, or there were enough */
async function askAll(home: HomeBucket, look: SaleLook, wanted: WantedUnits, store: TransferStore): Promise<number> {
  let have = await receive(home, look, store);
  for (const bucket of lendersOf(home, look)) {
    if (have >= wanted.all) break;
    const least = Math.max(1, wanted.least - have);
    const lent = await store.transferOut({ saleId: home.saleId, bucket }, home.bucket, look.epoch, least);
    if (lent.outcome !== 'transferred') continue;
    const transfer = { from: bucket, to: home.bucket, seq: lent.seq, units: lent.units };
    have = (await finishTransfer(home.saleId, transfer, look.epoch, store)) ?? have;
  }
  return have;
}

/** Units that are on their way to the bucket already come first. @returns units left there */
async function receive(home: HomeBucket, { epoch, buckets }: SaleLook, store: TransferStore): Promise<number> {
  let have = buckets[home.bucket]?.unitsLeft ?? 0;
  for (const transfer of openTransfers(buckets)) {
    if (transfer.to !== home.bucket) continue;
    have = (await finishTransfer(home.saleId, transfer, epoch, store)) ?? have;
  }
  return have;
}

/** Those with most units first. */
function lendersOf(home: HomeBucket, { buckets }: SaleLook): number[] {
  return buckets
    .map(({ unitsLeft }, bucket) => ({ unitsLeft, bucket }))
    .filter(({ unitsLeft, bucket }) => unitsLeft > 0 && bucket !== home.bucket)
    .sort((a, b) => b.unitsLeft - a.unitsLeft)
    .map(({ bucket }) => bucket);
}

/** Fetches units for the buckets of this process, one fetch per bucket at a time. */
export class UnitFetcher {
  readonly #store: TransferStore;
  readonly #underWay = new Map<string, Promise<Gathered>>();

  constructor(store: TransferStore) {
    this.#store = store;
  }

  /**
   * Whoever comes while a fetch is under way waits for it, and tries again when it has brought something. That there is
   * nothing he believes only of a fetch that began after he came.
   * @throws OperationalError redis
   */
  async fetch(home: HomeBucket, wanted: WantedUnits): Promise<Gathered> {
    const name = `${home.saleId}:${home.bucket}/${home.buckets}`;
    const earlier = this.#underWay.get(name);
    if (earlier !== undefined) {
      const gathered = await earlier.catch(() => null); // whoever began it hears why
      if (gathered?.outcome === 'gathered') return gathered;
    }
    let fetch = this.#underWay.get(name);
    if (fetch === undefined) {
      fetch = gatherUnits(home, wanted, this.#store).finally(() => this.#underWay.delete(name));
      this.#underWay.set(name, fetch);
    }
    return fetch;
  }

  /** Units left in all buckets; null when that cannot be said now. @throws OperationalError redis */
  async count(sale: SaleBuckets): Promise<number | null> {
    const counted = await countUnitsLeft(sale, this.#store);
    return typeof counted === 'string' ? null : counted;
  }
}

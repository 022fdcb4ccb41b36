import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { PurchaseNotifications } from '../core/ports/purchase-notifications.js';
import type { StockStore } from '../core/ports/stock-store.js';
import { bucketName, homeBucket, type HomeBucket, type SaleBuckets } from '../core/bucket.js';
import type { UnitFetcher } from '../sales/stock/gather-units.js';

export interface SoldOutFlagsOptions {
  /** How long a flag applies after zero units were seen, ms. Delays the sale of released units by at most this time. */
  readonly lifeMs: number;
  /**
   * Maximum number of accepted buyers kept, over all sales. The least recently used flags make room. A bucket with more
   * buyers gets no flag: Redis refuses its purchases, which is slower but equally correct.
   */
  readonly buyersMax: number;
}

export interface SoldOutFlagsPorts {
  readonly store: StockStore;
  readonly units: UnitFetcher;
  /** Names buyers who are accepted after a bucket was read. If omitted, the whole bucket is read again. */
  readonly notifications?: PurchaseNotifications;
  readonly clock: Clock;
  readonly log: Log;
}

interface Flag {
  /**
   * Every buyer who was ever accepted. Their requests go to Redis, so a repeat of an accepted purchase is never
   * `sold_out`. Holds buyers rather than keys: a buyer who buys and cancels repeatedly adds a key each time.
   */
  buyers: Set<string>;
  /** Epoch of the sale when the buyers were read. A rebuild may replace buyers without changing their number. */
  epoch: number;
  /** The flag refuses until this time. */
  untilMs: number;
  /** The bucket counts as empty until this time, though its accepted buyers may not be known yet. */
  emptyUntilMs: number;
  /** True while the flag is being armed or renewed. */
  isBusy: boolean;
  /** The future `buyers` during a read of the bucket. */
  reading: Set<string> | null;
  /** When accepted buyers were found whose notification has not arrived. 0 if none is missing. */
  missingSinceMs: number;
  /** Ends listening for new buyers. Null if the flag does not listen. */
  end: (() => void) | null;
}

interface Counted {
  readonly beganMs: number;
  /** Null if the units cannot be counted now. */
  readonly unitsLeft: Promise<number | null>;
}

const NOBODY = '';
/** Maximum number of flags kept. The least recently used flag makes room. */
const FLAGS_MAX = 1000;
/** Notifications of missing buyers come once their orders are in MySQL. Then the whole bucket is read again. */
const NOTIFIED_WITHIN_MS = 2000;
/**
 * Maximum age of a count of all buckets, as a fraction of the life of a flag. Flags share counts: if the flag of every
 * bucket counted all buckets itself, the cost would grow with the square of the number of buckets.
 */
const COUNT_AGE_MAX = 1 / 4;
/** A flag that refuses no buyer for this long is dropped with its buyers. */
const IDLE_MS = 60_000;

/**
 * Answers most requests for a sold-out sale from memory. A flag is armed once precheck has seen zero units left and
 * this process has read the accepted buyers. It applies for `lifeMs`. While it refuses buyers, it is renewed in the
 * background before it ends; otherwise all buyers would reach Redis together each time.
 */
export class SoldOutFlags {
  readonly #options: SoldOutFlagsOptions;
  readonly #ports: SoldOutFlagsPorts;
  readonly #flags = new LRUCache<string, Flag>({ max: FLAGS_MAX, dispose: ({ end }) => end?.(), noDisposeOnSet: true });
  /** Counts by sale and number of buckets, because a caller that assumes fewer buckets counts fewer units. */
  readonly #counts = new LRUCache<string, Counted>({ max: FLAGS_MAX });
  #tidyAtMs = 0;

  constructor(options: SoldOutFlagsOptions, ports: SoldOutFlagsPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get buyers(): number {
    let sum = 0;
    for (const { buyers } of this.#flags.values()) sum += buyers.size;
    return sum;
  }

  /** Returns whether no units are left and no purchase of this buyer was ever accepted. */
  refuses(ref: HomeBucket, userId: string): boolean {
    const flag = this.#flags.get(bucketName(ref));
    if (flag === undefined) return false;
    const restMs = flag.untilMs - this.#ports.clock.monotonicMs();
    if (restMs <= 0) return false;
    if (restMs <= this.#options.lifeMs / 2 && !flag.isBusy) {
      void this.#whileBusy(flag, ref, this.#renew, this.#ports.clock.monotonicMs());
    }
    return !flag.buyers.has(userId);
  }

  /**
   * Whether no bucket has units left. True as soon as zero is seen, before the accepted buyers are known. Ends with the
   * flag, so the next purchase notices returned units.
   */
  isSoldOut({ saleId, buckets }: SaleBuckets): boolean {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const ref = { saleId, bucket, buckets }; // the flag of any bucket stands for all buckets
      if (this.refuses(ref, NOBODY)) return true;
      const flag = this.#flags.get(bucketName(ref));
      if (flag !== undefined && flag.emptyUntilMs > this.#ports.clock.monotonicMs()) return true;
    }
    return false;
  }

  /**
   * Records the units that precheck has seen: of all buckets, if the sale has several. Ignores null, the answer of a
   * bucket that is not loaded.
   * @param seenMs when precheck was sent, monotonic ms
   */
  observe(ref: HomeBucket, unitsLeft: number | null, seenMs: number = this.#ports.clock.monotonicMs()): void {
    if (this.#ports.clock.monotonicMs() >= this.#tidyAtMs) this.#dropIdle();
    if (unitsLeft === null) return;
    const name = bucketName(ref);
    const flag = this.#flags.get(name);
    if (unitsLeft > 0) {
      if (flag) forget(flag);
      return;
    }
    const armed = flag ?? newFlag();
    armed.emptyUntilMs = seenMs + this.#options.lifeMs;
    if (armed.isBusy || armed.untilMs > this.#ports.clock.monotonicMs()) return;
    this.#flags.set(name, armed);
    void this.#whileBusy(armed, ref, this.#arm, seenMs);
  }

  /** Renews a flag with one read of Redis for all buyers, unless precheck would find another refusal than sold out. */
  readonly #renew = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale === null || sale.state === 'closed' || sale.nowMs >= sale.closesAtMs) {
      this.#flags.delete(bucketName(ref)); // the sale is over, and precheck says so
      return;
    }
    if (sale.state !== 'open') return;
    const count = ref.buckets > 1 ? this.#countAll(ref) : { beganMs: seenMs, unitsLeft: sale.unitsLeft };
    const unitsLeft = await count.unitsLeft;
    if (unitsLeft === null) return;
    if (unitsLeft > 0) forget(flag);
    else await this.#armIn(sale.epoch, ref, flag, Math.min(seenMs, count.beganMs));
  };

  /** Counts the units left in all buckets. The flags of all buckets share the count. */
  #countAll(ref: HomeBucket): Counted {
    const beganMs = this.#ports.clock.monotonicMs();
    const name = `${ref.saleId}/${ref.buckets}`;
    const known = this.#counts.get(name);
    if (known !== undefined && beganMs - known.beganMs < this.#options.lifeMs * COUNT_AGE_MAX) return known;
    const count = { beganMs, unitsLeft: this.#ports.units.count(ref) };
    this.#counts.set(name, count);
    count.unitsLeft.catch(() => this.#counts.delete(name)); // the waiting caller gets the error
    return count;
  }

  readonly #arm = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale !== null) await this.#armIn(sale.epoch, ref, flag, seenMs);
  };

  /** Arms the flag if all accepted buyers are known. */
  async #armIn(epoch: number, ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> {
    const { store, clock } = this.#ports;
    const count = await store.acceptedBuyerCount(ref);
    if (epoch === flag.epoch && count > flag.buyers.size && flag.end !== null) {
      // Units were sold again. Notifications will name their buyers; until then Redis refuses.
      if (flag.missingSinceMs === 0) flag.missingSinceMs = clock.monotonicMs();
      if (clock.monotonicMs() - flag.missingSinceMs < NOTIFIED_WITHIN_MS) return;
    }
    if (epoch !== flag.epoch || count !== flag.buyers.size) {
      if (!this.#makeRoom(count, ref)) return;
      await this.#readBuyers(ref, flag);
      flag.epoch = epoch;
    }
    flag.missingSinceMs = 0;
    if (count === flag.buyers.size) flag.untilMs = seenMs + this.#options.lifeMs;
  }

  /** Reads all accepted buyers. Starts listening first, so that a buyer accepted during the read is not missed. */
  async #readBuyers(ref: HomeBucket, flag: Flag): Promise<void> {
    const buyers = (flag.reading = new Set<string>());
    flag.end ??= this.#listen(ref, flag);
    try {
      for await (const chunk of this.#ports.store.acceptedBuyers(ref)) for (const userId of chunk) buyers.add(userId);
      flag.buyers = buyers;
    } finally {
      flag.reading = null;
    }
  }

  #listen({ saleId, bucket, buckets }: HomeBucket, flag: Flag): (() => void) | null {
    const { notifications } = this.#ports;
    if (notifications === undefined) return null;
    return notifications.listenToSale(saleId, ({ userId }) => {
      if (homeBucket(userId, buckets) !== bucket) return;
      flag.reading?.add(userId);
      if (flag.buyers.size < this.#options.buyersMax) flag.buyers.add(userId);
    });
  }

  /** Drops the least recently used flags until `count` buyers fit. @returns false if they never fit */
  #makeRoom(count: number, ref: HomeBucket): boolean {
    const { buyersMax } = this.#options;
    if (count > buyersMax) return false;
    const own = bucketName(ref);
    let others = this.buyers - (this.#flags.peek(own)?.buyers.size ?? 0);
    for (const name of [...this.#flags.rkeys()]) {
      if (others + count <= buyersMax) return true;
      if (name === own) continue;
      others -= this.#flags.peek(name)?.buyers.size ?? 0;
      this.#flags.delete(name);
    }
    return true;
  }

  #dropIdle(): void {
    const nowMs = this.#ports.clock.monotonicMs();
    this.#tidyAtMs = nowMs + IDLE_MS;
    for (const [name, { untilMs, emptyUntilMs, isBusy }] of this.#flags.entries()) {
      if (!isBusy && Math.max(untilMs, emptyUntilMs) < nowMs - IDLE_MS) this.#flags.delete(name);
    }
  }

  async #whileBusy(
    flag: Flag,
    ref: HomeBucket,
    read: (ref: HomeBucket, flag: Flag, seenMs: number) => Promise<void>,
    seenMs: number,
  ): Promise<void> {
    flag.isBusy = true;
    try {
      await read(ref, flag, seenMs);
    } catch (err) {
      this.#ports.log.warn(
        { err, saleId: ref.saleId },
        'could not set the sold-out flag; Redis refuses purchases instead',
      );
    } finally {
      flag.isBusy = false;
      if (this.#flags.peek(bucketName(ref)) !== flag) flag.end?.(); // the flag was dropped in the meantime
    }
  }
}

const newFlag = (): Flag => ({
  buyers: new Set<string>(),
  epoch: 0,
  untilMs: 0,
  emptyUntilMs: 0,
  isBusy: false,
  reading: null,
  missingSinceMs: 0,
  end: null,
});

function forget(flag: Flag): void {
  flag.untilMs = 0;
  flag.emptyUntilMs = 0;
}

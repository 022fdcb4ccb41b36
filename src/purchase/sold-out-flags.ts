import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { PurchaseNotifications } from '../core/ports/purchase-notifications.js';
import type { StockStore } from '../core/ports/stock-store.js';
import { bucketName, homeBucket, type HomeBucket, type SaleBuckets } from '../core/bucket.js';
import type { UnitFetcher } from '../sales/stock/gather-units.js';

export interface SoldOutFlagsOptions {
  /**
   * How long a flag applies after zero units were seen, ms. Released units are offered again after this time at the
   * latest.
   */
  readonly lifeMs: number;
  /**
   * Maximum number of accepted buyers kept, over all sales. The least recently used flags make room. A bucket that has
   * more buyers than this gets no flag: Redis refuses its purchases, which is slower but equally correct.
   */
  readonly buyersMax: number;
}

export interface SoldOutFlagsPorts {
  readonly store: StockStore;
  /** Counts the units in all buckets of a sale with several buckets. */
  readonly units: UnitFetcher;
  /** Names the buyers who are accepted after a bucket was read. If omitted, the whole bucket is read again. */
  readonly notifications?: PurchaseNotifications;
  readonly clock: Clock;
  readonly log: Log;
}

interface Flag {
  /**
   * Every buyer who was ever accepted. For these buyers, Redis is asked, so that a repeat of an accepted purchase is
   * never `sold_out`. Buyers are kept rather than keys, because a buyer who buys and cancels repeatedly adds a key each
   * time.
   */
  buyers: Set<string>;
  /**
   * The epoch of the sale when the buyers were read. After a rebuild, the sale may have the same number of accepted
   * buyers, but different ones.
   */
  epoch: number;
  /** The flag refuses until this time. */
  untilMs: number;
  /** Until this time no units are assumed to be left, though the accepted buyers may not be known yet. */
  emptyUntilMs: number;
  /** True while the flag is being armed or renewed. */
  isBusy: boolean;
  /** The future `buyers`, while the bucket is being read. */
  reading: Set<string> | null;
  /** When accepted buyers were found missing, because their notification has not arrived. 0 if none is missing. */
  missingSinceMs: number;
  /** Ends listening for new buyers. Null if the flag does not listen. */
  end: (() => void) | null;
}

interface Counted {
  readonly beganMs: number;
  /** Resolves to null if the units cannot be counted now. */
  readonly unitsLeft: Promise<number | null>;
}

/** No buyer has this id. */
const NOBODY = '';
/** Maximum number of buckets whose flag is kept. Beyond it, the least recently used flag is dropped. */
const FLAGS_MAX = 1000;
/**
 * How long missing buyers have to appear in notifications. A notification follows once the order is in MySQL. If buyers
 * are still missing after this time, their notification is late or lost, and the whole bucket is read again.
 */
const NOTIFIED_WITHIN_MS = 2000;
/**
 * Maximum age of a count of all buckets, as a fraction of the life of a flag. Each bucket has a flag, and each flag
 * needs the units of all buckets. If every flag counted for itself, the cost would grow with the square of the number
 * of buckets.
 */
const COUNT_AGE_MAX = 1 / 4;
/** A flag that has refused no buyer for this long is dropped, together with its buyers. */
const IDLE_MS = 60_000;

/**
 * Answers most requests for a sold-out sale from memory. A flag is armed after precheck has seen zero units left and
 * this process has read the accepted buyers. The flag applies for `lifeMs`. While it refuses buyers, it is renewed in
 * the background before it ends, because otherwise all buyers would reach Redis together each time it ends.
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

  /** Number of buyers kept, over all sales. */
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
   * Whether no bucket has units left. True from the first time that zero was seen, even if the accepted buyers are not
   * known yet. Ends with the flag, so that the next purchase notices returned units.
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
   * Records the units that precheck has seen. For a sale with several buckets, these are the units of all buckets. Null
   * is ignored: a bucket that is not loaded is not sold out.
   * @param seenMs when precheck was sent, because its answer may have taken long. Default: now.
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

  /**
   * Renews a flag with one read of Redis for all buyers. Does not renew it if the sale is not simply sold out, because
   * precheck then finds the right refusal.
   */
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

  /**
   * Drops the least recently used flags until `count` buyers fit.
   * @returns false if they never fit
   */
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

/** Ends the flag, because units are available again. */
function forget(flag: Flag): void {
  flag.untilMs = 0;
  flag.emptyUntilMs = 0;
}

import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { PurchaseNotifications } from '../core/ports/purchase-notifications.js';
import type { StockStore } from '../core/ports/stock-store.js';
import { bucketName, homeBucket, type HomeBucket } from '../core/bucket.js';
import type { UnitFetcher } from '../sales/stock/gather-units.js';

export interface SoldOutFlagsOptions {
  /** How long a flag holds after zero units were seen; released units are offered again this late at most. */
  readonly lifeMs: number;
  /**
   * Accepted buyers kept, all sales together. Buckets whose flag was not used for longest make room; buyers of a bucket that
   * has more by itself are refused by Redis instead, which is slower and as right.
   */
  readonly buyersMax: number;
}

export interface SoldOutFlagsPorts {
  readonly store: Pick<StockStore, 'acceptedBuyers' | 'acceptedBuyerCount' | 'readSale'>;
  /** Of a sale with several buckets, all of them together. */
  readonly units: Pick<UnitFetcher, 'count'>;
  /** Names the buyers who are accepted after a bucket was read. Left out: then it is read whole again. */
  readonly notifications?: Pick<PurchaseNotifications, 'listenToSale'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Flag {
  /**
   * Every buyer who was ever accepted: these are asked in Redis, so a repeat of an accepted purchase is never `sold_out`.
   * Buyers and not keys, because who buys and cancels again and again adds a key each time.
   */
  buyers: Set<string>;
  /** Of the sale when the buyers were read: a rebuilt sale may have accepted others, and as many. */
  epoch: number;
  /** Until then the flag refuses. */
  untilMs: number;
  /** Until then no units are known to be left, though the accepted buyers may not be known yet. */
  emptyUntilMs: number;
  /** It is being armed or renewed. */
  isBusy: boolean;
  /** While the bucket is read: what will be `buyers`. */
  reading: Set<string> | null;
  /** Since when accepted buyers are missing who were not notified yet; 0: none. */
  missingSinceMs: number;
  /** Ends the listening for new buyers; null: nobody listens. */
  end: (() => void) | null;
}

interface Counted {
  readonly beganMs: number;
  /** Null: that cannot be said now. */
  readonly unitsLeft: Promise<number | null>;
}

/** No buyer has this id. */
const NOBODY = '';
/** Buckets whose flag is kept; beyond that the least recently used one is dropped. */
const FLAGS_MAX = 1000;
/**
 * A buyer is named once their order is in MySQL. If buyers are missing for so long, the bucket is read whole again, since
 * their notification is late or was lost.
 */
const NOTIFIED_WITHIN_MS = 2000;
/**
 * How old a count of all buckets may be, in lives of a flag. Each bucket has a flag, and each flag needs the units of all of them:
 * counted for each alone it would be the square of the buckets.
 */
const COUNT_AGE_MAX = 1 / 4;
/** A flag that has refused nobody for so long is dropped, with its buyers. */
const IDLE_MS = 60_000;

/**
 * Answers most of a sold-out sale from memory. A flag is armed after precheck has seen zero units left and this process has
 * read which buyers were accepted; it holds for `lifeMs`. While it refuses buyers it is renewed in the background before it
 * ends: else all buyers would go to Redis together each time that it ends.
 */
export class SoldOutFlags {
  readonly #options: SoldOutFlagsOptions;
  readonly #ports: SoldOutFlagsPorts;
  readonly #flags = new LRUCache<string, Flag>({ max: FLAGS_MAX, dispose: ({ end }) => end?.(), noDisposeOnSet: true });
  /** By sale and its number of buckets: who knows of fewer counts fewer. */
  readonly #counts = new LRUCache<string, Counted>({ max: FLAGS_MAX });
  #tidyAtMs = 0;

  constructor(options: SoldOutFlagsOptions, ports: SoldOutFlagsPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Buyers that are kept, all sales together. */
  get buyers(): number {
    let sum = 0;
    for (const { buyers } of this.#flags.values()) sum += buyers.size;
    return sum;
  }

  /** True: no units are left, and no purchase of this buyer was ever accepted. */
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
   * Whether no units are left in any bucket, from the first time that zero was seen, also where the accepted buyers are
   * not known. It ends when the flag ends, so the next purchase after that notices units that came back.
   */
  isSoldOut({ saleId, buckets }: Pick<HomeBucket, 'saleId' | 'buckets'>): boolean {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const ref = { saleId, bucket, buckets }; // the flag of one bucket stands for all of them together
      if (this.refuses(ref, NOBODY)) return true;
      const flag = this.#flags.get(bucketName(ref));
      if (flag !== undefined && flag.emptyUntilMs > this.#ports.clock.monotonicMs()) return true;
    }
    return false;
  }

  /**
   * Notes the units that precheck has seen; for a sale with several buckets, those of all buckets together. Null says
   * nothing: a bucket that is not loaded is not sold out.
   * @param seenMs when precheck was sent: its answer may have taken long; default now
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

  /** One read of Redis for all buyers. A sale that is not plainly sold out is not renewed: precheck finds the right refusal. */
  readonly #renew = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale === null || sale.state === 'closed' || sale.nowMs >= sale.closesAtMs) {
      this.#flags.delete(bucketName(ref)); // it is over: precheck says so
      return;
    }
    if (sale.state !== 'open') return;
    const count = ref.buckets > 1 ? this.#countAll(ref) : { beganMs: seenMs, unitsLeft: sale.unitsLeft };
    const unitsLeft = await count.unitsLeft;
    if (unitsLeft === null) return;
    if (unitsLeft > 0) forget(flag);
    else await this.#armIn(sale.epoch, ref, flag, Math.min(seenMs, count.beganMs));
  };

  /** The units left in all buckets, shared by their flags. */
  #countAll(ref: HomeBucket): Counted {
    const beganMs = this.#ports.clock.monotonicMs();
    const name = `${ref.saleId}/${ref.buckets}`;
    const known = this.#counts.get(name);
    if (known !== undefined && beganMs - known.beganMs < this.#options.lifeMs * COUNT_AGE_MAX) return known;
    const count = { beganMs, unitsLeft: this.#ports.units.count(ref) };
    this.#counts.set(name, count);
    count.unitsLeft.catch(() => this.#counts.delete(name)); // who waits for it hears the error
    return count;
  }

  readonly #arm = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale !== null) await this.#armIn(sale.epoch, ref, flag, seenMs);
  };

  /** Arms the flag if every accepted buyer is known. */
  async #armIn(epoch: number, ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> {
    const { store, clock } = this.#ports;
    const count = await store.acceptedBuyerCount(ref);
    if (epoch === flag.epoch && count > flag.buyers.size && flag.end !== null) {
      // Units were sold again. Their buyers come by themselves, and until then Redis refuses.
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

  /** All of them. It listens first, so that no buyer is missed who comes meanwhile. */
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

  /** Drops the flags that were not used for longest until so many buyers fit. @returns false when they never do */
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
      this.#ports.log.warn({ err, saleId: ref.saleId }, 'the sold-out flag could not be armed; Redis refuses instead');
    } finally {
      flag.isBusy = false;
      if (this.#flags.peek(bucketName(ref)) !== flag) flag.end?.(); // it was dropped meanwhile
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

/** Units are there again. */
function forget(flag: Flag): void {
  flag.untilMs = 0;
  flag.emptyUntilMs = 0;
}

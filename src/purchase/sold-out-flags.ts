import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { StockStore } from '../core/ports/stock-store.js';
import { bucketName, type HomeBucket } from '../core/bucket.js';
import type { UnitFetcher } from '../sales/stock/gather-units.js';

export interface SoldOutFlagsOptions {
  /** How long a flag holds after zero units were seen; released units are offered again this late at most. */
  readonly lifeMs: number;
  /** Keys kept per bucket; buyers of a sale with more are refused by Redis instead, which is slower and as right. */
  readonly keysMax: number;
}

export interface SoldOutFlagsPorts {
  readonly store: Pick<StockStore, 'acceptedKeys' | 'acceptedCount' | 'readSale'>;
  /** Of a sale with several buckets, all of them together. */
  readonly units: Pick<UnitFetcher, 'count'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Flag {
  /** Every key that was ever accepted: these are asked in Redis, so a repeat of an accepted purchase is never `sold_out`. */
  keys: Set<string>;
  /** Of the sale when the keys were read: a rebuilt sale may have accepted others, and as many. */
  epoch: number;
  /** Until then the flag refuses. */
  untilMs: number;
  /** Until then no units are known to be left, though the accepted keys may not be known yet. */
  emptyUntilMs: number;
  /** It is being armed or renewed. */
  isBusy: boolean;
}

/** No purchase has this key. */
const NO_KEY = '';
/** Buckets whose flag is kept; beyond that the least recently used one is dropped. */
const FLAGS_MAX = 1000;

/**
 * Answers most of a sold-out sale from memory. A flag is armed after precheck has seen zero units left and this process has
 * read which keys were accepted; it holds for `lifeMs`. While it refuses buyers it is renewed in the background before it
 * ends: else all buyers would go to Redis together each time that it ends.
 */
export class SoldOutFlags {
  readonly #options: SoldOutFlagsOptions;
  readonly #ports: SoldOutFlagsPorts;
  readonly #flags = new LRUCache<string, Flag>({ max: FLAGS_MAX });

  constructor(options: SoldOutFlagsOptions, ports: SoldOutFlagsPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** True: no units are left and this key was never accepted. */
  refuses(ref: HomeBucket, key: string): boolean {
    const flag = this.#flags.get(bucketName(ref));
    if (flag === undefined) return false;
    const restMs = flag.untilMs - this.#ports.clock.monotonicMs();
    if (restMs <= 0) return false;
    if (restMs <= this.#options.lifeMs / 2 && !flag.isBusy) {
      void this.#whileBusy(flag, ref, this.#renew, this.#ports.clock.monotonicMs());
    }
    return !flag.keys.has(key);
  }

  /**
   * Whether no units are left in any bucket, from the first time that zero was seen, also where the accepted keys are not
   * known. It ends when the flag ends, so the next purchase after that notices units that came back.
   */
  isSoldOut({ saleId, buckets }: Pick<HomeBucket, 'saleId' | 'buckets'>): boolean {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const ref = { saleId, bucket, buckets }; // the flag of one bucket stands for all of them together
      if (this.refuses(ref, NO_KEY)) return true;
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
    if (unitsLeft === null) return;
    const name = bucketName(ref);
    const flag = this.#flags.get(name);
    if (unitsLeft > 0) {
      if (flag) forget(flag);
      return;
    }
    const armed = flag ?? { keys: new Set<string>(), epoch: 0, untilMs: 0, emptyUntilMs: 0, isBusy: false };
    armed.emptyUntilMs = seenMs + this.#options.lifeMs;
    if (armed.isBusy || armed.untilMs > this.#ports.clock.monotonicMs()) return;
    this.#flags.set(name, armed);
    void this.#whileBusy(armed, ref, this.#arm, seenMs);
  }

  /** One read of Redis for all buyers. A sale that is not plainly sold out is not renewed: precheck finds the right refusal. */
  readonly #renew = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale === null || sale.state !== 'open' || sale.nowMs >= sale.closesAtMs) return;
    const unitsLeft = ref.buckets > 1 ? await this.#ports.units.count(ref) : sale.unitsLeft;
    if (unitsLeft === null) return;
    if (unitsLeft > 0) forget(flag);
    else await this.#armIn(sale.epoch, ref, flag, seenMs);
  };

  readonly #arm = async (ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> => {
    const sale = await this.#ports.store.readSale(ref);
    if (sale !== null) await this.#armIn(sale.epoch, ref, flag, seenMs);
  };

  async #armIn(epoch: number, ref: HomeBucket, flag: Flag, seenMs: number): Promise<void> {
    const { store } = this.#ports;
    const count = await store.acceptedCount(ref);
    if (count > this.#options.keysMax) return;
    if (count !== flag.keys.size || epoch !== flag.epoch) {
      const keys = new Set<string>();
      for await (const chunk of store.acceptedKeys(ref)) for (const key of chunk) keys.add(key);
      flag.keys = keys;
      flag.epoch = epoch;
    }
    if (count === flag.keys.size) flag.untilMs = seenMs + this.#options.lifeMs;
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
    }
  }
}

/** Units are there again. */
function forget(flag: Flag): void {
  flag.untilMs = 0;
  flag.emptyUntilMs = 0;
}

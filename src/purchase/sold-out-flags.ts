import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { HomeBucket, StockStore } from '../core/ports/stock-store.js';
import type { UnitFetcher } from '../sales/stock/gather-units.js';

export interface SoldOutFlagsOptions {
  /** How long a seen zero is believed; released units are offered again this late at the most. */
  readonly lifeMs: number;
  /** Keys kept per bucket; a sale that let more in is refused by Redis instead, which is slower but as right. */
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
  /** Every key that was ever let in: these are asked in Redis, so a winner who asks again never hears `sold_out`. */
  keys: Set<string>;
  /** Of the sale when they were read; a rebuilt ledger may have let others in, and as many. */
  epoch: number;
  untilMs: number;
  /** So long nothing is known to be left; who has won meanwhile may not be known yet. */
  emptyUntilMs: number;
  busy: boolean;
}

/** No key of a purchase. */
const NOBODY = '';
/** Buckets whose flag is kept; beyond it the least used one goes. */
const FLAGS_MAX = 1000;

/**
 * Answers most of a sold-out sale from memory. The flag is armed only after precheck has seen zero units left and
 * this process knows who has won; it is believed for `lifeMs`. While it refuses buyers it is seen again in good time,
 * in the background: if it had to end first, all who wait for it would go to Redis together, twice a second.
 */
export class SoldOutFlags {
  readonly #options: SoldOutFlagsOptions;
  readonly #ports: SoldOutFlagsPorts;
  readonly #flags = new LRUCache<string, Flag>({ max: FLAGS_MAX });

  constructor(options: SoldOutFlagsOptions, ports: SoldOutFlagsPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** True: nothing is left and this key never won. */
  refuses(ref: HomeBucket, key: string): boolean {
    const flag = this.#flags.get(nameOf(ref));
    if (flag === undefined) return false;
    const restMs = flag.untilMs - this.#ports.clock.nowMs();
    if (restMs <= 0) return false;
    if (restMs <= this.#options.lifeMs / 2 && !flag.busy)
      void this.#whileBusy(flag, ref, this.#renew, this.#ports.clock.nowMs());
    return !flag.keys.has(key);
  }

  /**
   * Whether nothing is left in any bucket, from the first zero that was seen, also while or where nobody knows the
   * winners. Who keeps asking hears of units that come back.
   */
  isSoldOut({ saleId, buckets }: Pick<HomeBucket, 'saleId' | 'buckets'>): boolean {
    for (let bucket = 0; bucket < buckets; bucket++) {
      const ref = { saleId, bucket, buckets }; // the flag of one bucket stands for all of them together
      if (this.refuses(ref, NOBODY)) return true;
      const flag = this.#flags.get(nameOf(ref));
      if (flag !== undefined && flag.emptyUntilMs > this.#ports.clock.nowMs()) return true;
    }
    return false;
  }

  /**
   * What precheck has seen, or of a sale with several buckets what all of them together have. Null says nothing: a bucket
   * that is not loaded is not sold out.
   * @param seenMs when precheck was asked: its answer may have been long on its way; default now
   */
  observe(ref: HomeBucket, unitsLeft: number | null, seenMs: number = this.#ports.clock.nowMs()): void {
    if (unitsLeft === null) return;
    const name = nameOf(ref);
    const flag = this.#flags.get(name);
    if (unitsLeft > 0) {
      if (flag) forget(flag);
      return;
    }
    const armed = flag ?? { keys: new Set<string>(), epoch: 0, untilMs: 0, emptyUntilMs: 0, busy: false };
    armed.emptyUntilMs = seenMs + this.#options.lifeMs;
    if (armed.busy || armed.untilMs > this.#ports.clock.nowMs()) return;
    this.#flags.set(name, armed);
    void this.#whileBusy(armed, ref, this.#arm, seenMs);
  }

  /** The look of one purchase for all. What is not plainly sold out gets no longer life: precheck finds the word. */
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
    look: (ref: HomeBucket, flag: Flag, seenMs: number) => Promise<void>,
    seenMs: number,
  ): Promise<void> {
    flag.busy = true;
    try {
      await look(ref, flag, seenMs);
    } catch (err) {
      this.#ports.log.warn({ err, saleId: ref.saleId }, 'the sold-out flag could not be armed; Redis refuses instead');
    } finally {
      flag.busy = false;
    }
  }
}

/** Units are there. */
function forget(flag: Flag): void {
  flag.untilMs = 0;
  flag.emptyUntilMs = 0;
}

const nameOf = (ref: HomeBucket): string => `${ref.saleId}:${ref.bucket}/${ref.buckets}`;

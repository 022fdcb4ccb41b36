import { LRUCache } from 'lru-cache';
import type { Clock } from '../ports/clock.js';
import type { Log } from '../ports/log.js';
import type { BucketRef, StockLedger } from '../ports/stock-ledger.js';

export interface SoldOutFlagsOptions {
  /** How long a seen zero is believed; released units are offered again this late at the most. */
  readonly lifeMs: number;
  /** Keys kept per bucket; a sale that let more in is refused by Redis instead, which is slower but as right. */
  readonly keysMax: number;
}

export interface SoldOutFlagsPorts {
  readonly ledger: Pick<StockLedger, 'acceptedKeys' | 'acceptedCount'>;
  readonly clock: Clock;
  readonly log: Log;
}

interface Flag {
  /** Every key that was ever let in: these are asked in Redis, so a winner who asks again never hears `sold_out`. */
  keys: Set<string>;
  untilMs: number;
  busy: boolean;
}

/** Buckets whose flag is kept; beyond it the least used one goes. */
const FLAGS_MAX = 1000;

/**
 * Answers most of a sold-out sale from memory. The flag is armed only after precheck has seen zero units left and
 * this process knows who has won; it is believed for `lifeMs` and then must be seen again.
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
  refuses(ref: BucketRef, key: string): boolean {
    const flag = this.#flags.get(nameOf(ref));
    return flag !== undefined && flag.untilMs > this.#ports.clock.nowMs() && !flag.keys.has(key);
  }

  /** What precheck has just seen. Null says nothing: a bucket that is not loaded is not sold out. */
  observe(ref: BucketRef, unitsLeft: number | null): void {
    if (unitsLeft === null) return;
    const name = nameOf(ref);
    const flag = this.#flags.get(name);
    if (unitsLeft > 0) {
      if (flag) flag.untilMs = 0;
      return;
    }
    if (flag?.busy || (flag && flag.untilMs > this.#ports.clock.nowMs())) return;
    const armed = flag ?? { keys: new Set<string>(), untilMs: 0, busy: false };
    this.#flags.set(name, armed);
    void this.#arm(ref, armed);
  }

  async #arm(ref: BucketRef, flag: Flag): Promise<void> {
    const { ledger, clock, log } = this.#ports;
    const seenMs = clock.nowMs();
    flag.busy = true;
    try {
      const count = await ledger.acceptedCount(ref);
      if (count > this.#options.keysMax) return;
      if (count !== flag.keys.size) {
        const keys = new Set<string>();
        for await (const chunk of ledger.acceptedKeys(ref)) for (const key of chunk) keys.add(key);
        flag.keys = keys;
      }
      if (count === flag.keys.size) flag.untilMs = seenMs + this.#options.lifeMs;
    } catch (err) {
      log.warn({ err, saleId: ref.saleId }, 'the sold-out flag could not be armed; Redis refuses instead');
    } finally {
      flag.busy = false;
    }
  }
}

const nameOf = (ref: BucketRef): string => `${ref.saleId}:${ref.bucket}`;

import { OperationalError } from '../core/errors.js';
import type { NotificationsMetrics } from '../core/ports/notifications-metrics.js';
import type { PurchaseRef } from '../core/ports/purchase-notifications.js';
import { isEnd, isNotifications, stepOf, type PurchaseStep, type StepWord } from './purchase-step.js';
import { PurchaseWatch, type WatchPorts } from './purchase-watch.js';
import { readPurchase, type ReadPurchasePorts } from './read-purchase.js';

export interface FollowPurchasePorts extends ReadPurchasePorts, WatchPorts {
  readonly metrics: NotificationsMetrics;
}

export interface FollowPurchaseOptions {
  /** Purchases followed at once; one more is `overloaded`. */
  readonly followersMax: number;
  /** The same for the purchases of one buyer, so that nobody takes the places of the others. */
  readonly followersPerBuyerMax: number;
  /** Each is looked at this often at least, ms, also when no news come. */
  readonly lookMaxMs: number;
}

/** The user id is from the token: nobody can follow another buyer's purchase. */
export interface FollowQuery extends PurchaseRef {
  /** The last step that the follower was told before; null: none. */
  readonly seen: StepWord | null;
  /** Aborts when the follower has gone. */
  readonly signal: AbortSignal;
}

/** Steps as they are made, none twice, none that was seen. Whoever does not read them to their end must `close`. */
export interface Following {
  readonly outcome: 'following';
  /** Ends behind the last step of the purchase, or when the signal aborts. */
  steps(): AsyncGenerator<PurchaseStep>;
  close(): void;
}

/**
 * - `ended`: the follower has seen the end before, there is nothing more to come
 * - `overloaded`: too many are followed at once, by all or by this buyer
 */
export type FollowAnswer = Following | { readonly outcome: 'ended' | 'not_found' | 'overloaded' };

/** Follows purchases from step to step, by the news and by a look now and then. */
export class FollowPurchase {
  readonly #ports: FollowPurchasePorts;
  readonly #options: FollowPurchaseOptions;
  /** Followers by buyer; who has none is not in it. */
  readonly #byBuyer = new Map<string, number>();
  #following = 0;

  constructor(ports: FollowPurchasePorts, options: FollowPurchaseOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  get following(): number {
    return this.#following;
  }

  /**
   * Looks how it stands, whatever was told before, so that nothing is missed between two followings.
   * @throws OperationalError redis or mysql
   */
  async open(query: FollowQuery): Promise<FollowAnswer> {
    const close = this.#enter(query.userId);
    if (close === null) return { outcome: 'overloaded' };
    try {
      const first = stepOf(await readPurchase(query, null, this.#ports));
      const ended = query.seen !== null && isEnd(query.seen);
      if (first !== null && !ended)
        return { outcome: 'following', steps: () => this.#steps(first, query, close), close };
      close();
      return { outcome: first === null ? 'not_found' : 'ended' };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Takes a place. @returns gives it back, once; null when there is none */
  #enter(userId: string): (() => void) | null {
    const { followersMax, followersPerBuyerMax } = this.#options;
    const own = this.#byBuyer.get(userId) ?? 0;
    if (this.#following >= followersMax || own >= followersPerBuyerMax) return null;
    this.#following++;
    this.#byBuyer.set(userId, own + 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#following--;
      const left = (this.#byBuyer.get(userId) ?? 1) - 1;
      if (left > 0) this.#byBuyer.set(userId, left);
      else this.#byBuyer.delete(userId);
    };
  }

  async *#steps(first: PurchaseStep, query: FollowQuery, close: () => void): AsyncGenerator<PurchaseStep> {
    const watch = new PurchaseWatch(query, this.#ports, this.#options.lookMaxMs);
    try {
      let { seen } = query;
      let step: PurchaseStep | null = first;
      while (!query.signal.aborted) {
        if (step !== null && isNotifications(step.word, seen)) {
          seen = step.word;
          yield step;
          if (isEnd(seen)) return;
        }
        step = await this.#next(watch, query, seen);
      }
    } finally {
      watch.close();
      close();
    }
  }

  /** Null when there is nothing to say: also while Redis or MySQL is out, since the follower can wait. */
  async #next(watch: PurchaseWatch, query: FollowQuery, seen: StepWord | null): Promise<PurchaseStep | null> {
    const told = await watch.next(Infinity, query.signal);
    if (query.signal.aborted) return null;
    try {
      const step = stepOf(await readPurchase(query, told, this.#ports));
      if (told !== null && step?.word === 'pending') watch.lookSoon(); // MySQL has it, Redis follows within milliseconds
      if (step !== null && isNotifications(step.word, seen))
        this.#ports.metrics.changeFound(told === null ? 'look' : 'news');
      return step;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      if (told !== null) watch.lookSoon(); // what was told is lost
      return null;
    }
  }
}

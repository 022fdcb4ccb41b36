import { OperationalError } from '../core/errors.js';
import type { OrderState } from '../core/order.js';
import type { PurchaseStatus } from '../core/outcome.js';
import { Places, type AddressShare } from '../core/places.js';
import type { RequestRef } from '../core/purchase.js';
import type { GetPurchasePorts } from './get-purchase.js';
import { PurchaseWatch } from './purchase-watch.js';
import { readPurchase } from './read-purchase.js';

/** A purchase only moves to higher ranks. The four steps with the highest rank are final. */
export const STEP_RANKS = { pending: 0, ordered: 1, paid: 2, cancelled: 2, expired: 2, failed: 2 } as const;
export type StepWord = keyof typeof STEP_RANKS;

export interface PurchaseStep {
  readonly word: StepWord;
  readonly status: PurchaseStatus;
}

const ORDER_WORDS: Record<OrderState, StepWord> = {
  pending_payment: 'ordered',
  paid: 'paid',
  cancelled: 'cancelled',
  expired: 'expired',
  failed: 'failed',
  refunding: 'paid',
  refunded: 'paid',
  returned: 'paid',
  disputed: 'paid',
};

/** @returns null if the purchase was not found */
export function stepOf(status: PurchaseStatus): PurchaseStep | null {
  if (status.status === 'not_found') return null;
  return { word: status.status === 'ordered' ? ORDER_WORDS[status.orderState] : status.status, status };
}

export const isStepWord = (text: unknown): text is StepWord =>
  typeof text === 'string' && Object.hasOwn(STEP_RANKS, text);
const isEnd = (word: StepWord): boolean => STEP_RANKS[word] === STEP_RANKS.paid;
/** Steps are never repeated or taken back. @param seen the last step that was sent, or null */
const isNewStep = (word: StepWord, seen: StepWord | null): boolean =>
  seen === null || STEP_RANKS[word] > STEP_RANKS[seen];

export interface FollowPurchaseOptions {
  /** Maximum number of purchases followed at once. Any further follower is `overloaded`. */
  readonly followersMax: number;
  /** The same limit for one buyer, so that a single buyer cannot take all places. */
  readonly followersPerBuyerMax: number;
  /** The same limit for one address. Unlimited if omitted. */
  readonly followersPerAddressMax?: number;
  /** Maximum pause between two reads of a purchase without a notification, ms. */
  readonly pollMaxMs: number;
}

/** The user id comes from the token, so a buyer cannot follow another buyer's purchase. */
export interface FollowQuery extends RequestRef {
  /** The last step that the follower has seen, or null. */
  readonly seen: StepWord | null;
  /** The keys under which the follower's address is limited. If empty or omitted, there is no limit by address. */
  readonly shares?: readonly AddressShare[];
  /** Aborts when the follower has gone. */
  readonly signal: AbortSignal;
}

/** Yields the steps that the follower has not seen. A caller that stops before the end must call `close`. */
export interface Following {
  readonly outcome: 'following';
  /** Ends after the last step of the purchase, or when the signal aborts. */
  steps(): AsyncGenerator<PurchaseStep>;
  close(): void;
}

/** `ended`: the follower has seen the last step. `overloaded`: too many followers, in all or per buyer or address. */
export type FollowAnswer = Following | { readonly outcome: 'ended' | 'not_found' | 'overloaded' };

/** Follows purchases step by step, using notifications and occasional reads of the stores. */
export class FollowPurchase {
  readonly #ports: GetPurchasePorts;
  readonly #pollMaxMs: number;
  readonly #places: Places;

  constructor(ports: GetPurchasePorts, options: FollowPurchaseOptions) {
    this.#ports = ports;
    this.#pollMaxMs = options.pollMaxMs;
    this.#places = new Places({
      max: options.followersMax,
      perUserMax: options.followersPerBuyerMax,
      perAddressMax: options.followersPerAddressMax ?? Infinity,
    });
  }

  get following(): number {
    return this.#places.taken;
  }

  /**
   * Reads the purchase regardless of what the follower has seen, so that no step is missed between two connections.
   * @throws OperationalError redis or mysql
   */
  async open(query: FollowQuery): Promise<FollowAnswer> {
    const close = this.#places.take(query.userId, query.shares);
    if (close === null) return { outcome: 'overloaded' };
    try {
      const first = stepOf(await readPurchase(query, null, this.#ports));
      const ended = query.seen !== null && isEnd(query.seen);
      if (first !== null && !ended) {
        return { outcome: 'following', steps: () => this.#steps(first, query, close), close };
      }
      close();
      return { outcome: first === null ? 'not_found' : 'ended' };
    } catch (error) {
      close();
      throw error;
    }
  }

  async *#steps(first: PurchaseStep, query: FollowQuery, close: () => void): AsyncGenerator<PurchaseStep> {
    const watch = new PurchaseWatch(query, this.#ports, this.#pollMaxMs);
    try {
      let { seen } = query;
      let step: PurchaseStep | null = first;
      while (!query.signal.aborted) {
        if (step !== null && isNewStep(step.word, seen)) {
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

  /** Returns the next step. Null if there is none, or while Redis or MySQL is down, because the follower can wait. */
  async #next(watch: PurchaseWatch, query: FollowQuery, seen: StepWord | null): Promise<PurchaseStep | null> {
    const notified = await watch.next(Infinity, query.signal);
    if (query.signal.aborted) return null;
    try {
      const step = stepOf(await readPurchase(query, notified, this.#ports));
      if (notified !== null && step?.word === 'pending') watch.readSoon(); // Redis will have it within milliseconds
      if (step !== null && isNewStep(step.word, seen)) {
        this.#ports.metrics.changeFound(notified === null ? 'read' : 'notification');
      }
      return step;
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      if (notified !== null) watch.readSoon(); // the notification is used up
      return null;
    }
  }
}

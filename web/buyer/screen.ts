import { asksFor, hindrance, type PageState } from './state.js';
import { offerOf } from './sale.js';
import type { OrderView } from './order.js';
import type { ProblemCode } from './problem-codes.js';

/** A place in the waiting room, as far as it is known. */
export interface ShownPlace {
  readonly position: number | null;
  readonly estimateMs: number | null;
}

/** What the page shows, with its button. Remaining times are in ms. */
export type Screen =
  /** Nothing is known of the sale, either not yet or not any more. */
  | { readonly name: 'loading' | 'missing' | 'order_loading' }
  | { readonly name: 'unreachable'; readonly code: ProblemCode }
  | {
      readonly name: 'countdown';
      readonly leftMs: number;
      readonly signedOut: boolean;
      readonly place: ShownPlace | null;
    }
  /**
   * The button can be pressed, unless the browser is offline. `passMs`: remaining time of a turn in the waiting room.
   */
  | { readonly name: 'ready'; readonly passMs: number | null; readonly isOffline: boolean }
  | { readonly name: 'preparing' | 'opening' | 'sold_out' | 'paused' | 'busy' | 'closed' | 'app_only' | 'signed_out' }
  /** A link signs another buyer in. */
  | { readonly name: 'other_buyer' }
  | { readonly name: 'room'; readonly place: ShownPlace }
  | { readonly name: 'refused'; readonly code: ProblemCode }
  | { readonly name: 'pause'; readonly leftMs: number }
  /** `code`: why the purchase is sent again. */
  | { readonly name: 'asking'; readonly code: ProblemCode | null }
  | { readonly name: 'checking' | 'held' }
  /** `signedOut`: the order can be paid after a new sign-in. */
  | { readonly name: 'to_pay'; readonly order: OrderView; readonly leftMs: number; readonly signedOut: boolean }
  | {
      readonly name: 'paid' | 'refunding' | 'refunded' | 'cancelled' | 'expired';
      readonly order: OrderView;
    }
  | { readonly name: 'failed'; readonly reason: string };

export function screenOf(state: PageState, nowMs: number): Screen {
  const { sale, saleProblem, purchase, offeredSignIn } = state;
  if (offeredSignIn !== null) return { name: 'other_buyer' };
  const ofPurchase = screenOfPurchase(state, nowMs);
  if (ofPurchase !== null) return ofPurchase;
  if (sale === null) {
    if (saleProblem === null || saleProblem === 'loading') return { name: 'loading' };
    return saleProblem === 'not_found' ? { name: 'missing' } : { name: 'unreachable', code: saleProblem };
  }
  const hindered = hindrance(state, nowMs);
  const offer = offerOf(sale, nowMs);
  switch (hindered) {
    case 'closed':
    case 'opening':
    case 'sold_out':
    case 'paused':
      return { name: hindered };
    case 'signature':
      return { name: 'app_only' };
    case 'refused':
      return { name: 'refused', code: purchase.problem?.code ?? 'internal' };
    case 'loading':
      return { name: 'busy' };
    case 'not_open':
      return { name: 'countdown', leftMs: sale.opensAtMs - nowMs, signedOut: false, place: placeOf(state) };
    case 'signed_out':
      if (offer === 'not_open') {
        return { name: 'countdown', leftMs: sale.opensAtMs - nowMs, signedOut: true, place: null };
      }
      return offer === 'open' ? { name: 'signed_out' } : { name: offer === 'loading' ? 'busy' : offer };
    case 'paused_buyer':
      return { name: 'pause', leftMs: state.pausedUntilMs - nowMs };
    case 'waiting':
      return { name: 'room', place: placeOf(state) ?? { position: null, estimateMs: null } };
    case 'token':
      return { name: 'preparing' };
    case 'no_sale':
    case 'under_way':
      return { name: 'loading' }; // both were handled above
    case 'offline':
    case null:
      return { name: 'ready', passMs: passMsOf(state, nowMs), isOffline: hindered !== null };
  }
}

/**
 * Lower limit of the shown time to pay while only the browser's clock is known. That clock may be wrong, so it ends
 * nothing.
 */
const LEAST_LEFT_MS = 1000;

function screenOfPurchase({ purchase, order, signInEnded, clock }: PageState, nowMs: number): Screen | null {
  switch (purchase.step) {
    case 'ready':
      return null;
    case 'asking':
      return signInEnded ? { name: 'signed_out' } : { name: 'asking', code: purchase.problem?.code ?? null };
    case 'checking':
    case 'held':
      return signInEnded ? { name: 'signed_out' } : { name: purchase.step };
    case 'failed':
      return { name: 'failed', reason: purchase.reason ?? '' };
    case 'ordered':
      if (order === null) return { name: signInEnded ? 'signed_out' : 'order_loading' };
      if (order.state === 'failed') return { name: 'failed', reason: purchase.reason ?? '' };
      if (order.state === 'returned') return { name: 'refunded', order };
      if (order.state === 'disputed') return { name: 'paid', order }; // the buyer's bank tells the reason
      if (order.state !== 'pending_payment') return { name: order.state, order };
      return {
        name: 'to_pay',
        order,
        leftMs: Math.max(clock === null ? LEAST_LEFT_MS : 0, (order.expiresAtMs ?? Infinity) - nowMs),
        signedOut: signInEnded,
      };
  }
}

function placeOf(state: PageState): ShownPlace | null {
  const { place } = state;
  if (!asksFor(state, 'queue_pass')) return null;
  return place.status === 'waiting' ? place : null;
}

function passMsOf(state: PageState, nowMs: number): number | null {
  const { place } = state;
  return place.status === 'admitted' && asksFor(state, 'queue_pass') ? place.endsAtMs - nowMs : null;
}

/** The state of the sale in one word, next to its title. */
export type Chip = 'not_open' | 'opening' | 'open' | 'few' | 'back' | 'sold_out' | 'paused' | 'closed' | 'loading';

export function chipOf({ sale, isBack }: PageState, nowMs: number): Chip {
  if (sale === null) return 'loading';
  const offer = offerOf(sale, nowMs);
  if (offer !== 'open') return offer;
  if (isBack) return 'back';
  return sale.stock === 'few' ? 'few' : 'open';
}

/** Splits a remaining time for display: whole seconds, rounded up, so that 0 is shown only when the time is over. */
export function clockParts(leftMs: number): Readonly<Record<'days' | 'hours' | 'minutes' | 'seconds', number>> {
  const left = Math.max(0, Math.ceil(leftMs / 1000));
  return {
    days: Math.floor(left / 86_400),
    hours: Math.floor(left / 3600) % 24,
    minutes: Math.floor(left / 60) % 60,
    seconds: left % 60,
  };
}

/** Returns how long to wait until the next second is shown, ms: never less than the rest of the current second. */
export const untilNextSecondMs = (leftMs: number): number =>
  leftMs <= 0 ? 1000 : leftMs - (Math.ceil(leftMs / 1000) - 1) * 1000;

/** Times before the opening, or before the payment deadline, that a screen reader announces, ms. */
const SAID_AT_MS = [600_000, 300_000, 60_000, 30_000, 10_000];

/** @returns the time to announce that has just been reached, ms; null if no such time was reached */
export const timeToSay = (beforeMs: number, leftMs: number): number | null =>
  SAID_AT_MS.find((atMs) => beforeMs > atMs && leftMs <= atMs && leftMs > atMs - 2000) ?? null;

import { maskedName } from '../shared/sign-in.js';
import type { Format } from './format.js';
import { timeToSay, type Screen } from './screen.js';
import type { PageState } from './state.js';
import { reasonIn, type TextName, type Words } from './words/words.js';

/** A screen with its texts. */
export interface Shown {
  readonly screen: Screen;
  /** Name of its headline and its sentence. */
  readonly name: TextName;
  /** A note about the screen. Null if there is nothing to note. */
  readonly note: string | null;
}

/** @param isSlow the result takes longer than usual */
export function shownOf(screen: Screen, state: PageState, isSlow: boolean, words: Words, format: Format): Shown {
  return { screen, name: nameOf(screen, state), note: noteOf(screen, state, isSlow, words, format) };
}

function nameOf(screen: Screen, { signInEnded }: PageState): TextName {
  if (screen.name === 'ready' && screen.isOffline) return 'offline';
  if (screen.name === 'ready' && screen.passMs !== null) return 'turn';
  if (screen.name === 'signed_out' && signInEnded) return 'sign_in_ended';
  if (screen.name === 'asking' && screen.code !== null) return 'asking_again';
  if (screen.name === 'to_pay' && screen.leftMs <= 0) return 'time_up';
  return screen.name;
}

function noteOf(screen: Screen, state: PageState, isSlow: boolean, words: Words, format: Format): string | null {
  const { problems } = words;
  const { purchase, proofProblem, moveProblem, offeredSignIn, signIn, sale } = state;
  const ofCode = (code: keyof typeof problems | null | undefined): string | null => (code ? problems[code] : null);
  switch (screen.name) {
    case 'unreachable':
    case 'refused':
    case 'asking':
      return ofCode(screen.code);
    case 'ready':
      return purchase.problem?.code === 'unpaid_pause' ? null : ofCode(purchase.problem?.code); // the pause is over
    case 'sold_out':
      return ofCode(purchase.problem?.code);
    case 'countdown': {
      const endsAtMs = screen.signedOut ? null : signIn?.endsAtMs;
      return (endsAtMs ?? Infinity) < (sale?.opensAtMs ?? 0) ? words.signInEarly : ofCode(proofProblem?.code);
    }
    case 'room':
    case 'preparing':
      return ofCode(proofProblem?.code);
    case 'held':
      return isSlow ? words.slow : null;
    case 'to_pay':
      return ofCode(screen.signedOut ? 'unauthorized' : moveProblem);
    case 'refunding':
      return null;
    case 'refunded':
      return words.refunded(format.price(screen.order.refundedCents));
    case 'paid':
    case 'cancelled':
    case 'expired': {
      const { refundCents } = screen.order;
      return refundCents > 0 ? words.refund(format.price(refundCents)) : null;
    }
    case 'failed':
      return reasonIn(words, screen.reason);
    case 'other_buyer':
      return words.linkFor(maskedName(offeredSignIn?.userId ?? ''));
    case 'loading':
    case 'missing':
    case 'order_loading':
    case 'opening':
    case 'paused':
    case 'busy':
    case 'closed':
    case 'app_only':
    case 'signed_out':
    case 'pause':
    case 'checking':
      return null;
  }
}

/**
 * Returns the announcement for a screen reader: each new screen, new notes on it, and some moments of a countdown.
 * @returns null: nothing to say; '': nothing to say, and the last announcement may be repeated
 */
export function sentenceFor(before: Shown | null, now: Shown, words: Words, format: Format): string | null {
  const { screens, says } = words;
  if (before?.name === now.name) return sentenceWithin(before, now, words, format);
  if (now.name === 'loading') return null;
  if (now.name === 'turn') return says.turn;
  if (now.name === 'ready') {
    if (before?.name === 'sold_out') return says.back;
    if (now.note !== null) return now.note;
    return before === null || before.name === 'loading' ? null : says.open;
  }
  const { title, text } = screens[now.name];
  return [title, now.note ?? '', text]
    .filter((part) => part !== '')
    .join('. ')
    .replaceAll('..', '.');
}

function sentenceWithin(before: Shown, { screen, note }: Shown, { says }: Words, format: Format): string | null {
  if (note !== before.note) return note ?? '';
  if (!('leftMs' in before.screen) || !('leftMs' in screen)) return null;
  const atMs = timeToSay(before.screen.leftMs, screen.leftMs);
  if (atMs === null) return null;
  if (screen.name === 'countdown') return says.in(format.spoken(atMs));
  return screen.name === 'to_pay' ? says.payIn(format.spoken(atMs)) : null;
}

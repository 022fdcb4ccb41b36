import type { Answer, Success } from '../shared/ask.js';
import { knownCode, MEANINGS, type ProblemCode } from './problem-codes.js';

/**
 * One purchase, from the key that is made before the click to its order. The moves are pure functions: what is sent when, and
 * how often, is decided by `Page`, which keeps the key in the storage of the tab before it sends anything.
 *
 * - `ready`: nothing is under way; `problem` says why the last click came to nothing, if there was one
 * - `asking`: the buyer has clicked; it is sent again, with the same key, until there is an answer that counts
 * - `checking`: it may have been accepted without our hearing of it, so its status is read before anything else. Where the server
 *   refuses to say it, it is `ready` again with `clickedAtMs`, and its order is looked for
 * - `held`: 202; units are held for this buyer, and an order will come
 * - `ordered`, `failed`: its end, as the order says
 */
export interface Purchase {
  readonly step: 'ready' | 'asking' | 'checking' | 'held' | 'ordered' | 'failed';
  /** The Idempotency-Key. A new one is made when this purchase has ended and the buyer wants another one. */
  readonly key: string;
  readonly quantity: number;
  /** When the buyer clicked, wall time, ms; null: they have not. */
  readonly clickedAtMs: number | null;
  /** Tries since the click that have failed. */
  readonly tries: number;
  /** While it is asked again: why. While ready: why the last click came to nothing. */
  readonly problem: Problem | null;
  /** A try was lost on its way or on the way back. */
  readonly isUnsure: boolean;
  readonly orderId: string | null;
  /** Why it failed, as the API names it. */
  readonly reason: string | null;
}

export interface Problem {
  readonly code: ProblemCode;
  /** As the server asks; null: it says nothing. */
  readonly retryAfterMs: number | null;
}

export const newPurchase = (key: string, quantity = 1): Purchase => ({
  step: 'ready',
  key,
  quantity,
  clickedAtMs: null,
  tries: 0,
  problem: null,
  isUnsure: false,
  orderId: null,
  reason: null,
});

/** A click before its time is repeated when the time is so near, ms. The server says so with `Retry-After`. */
const SOON_MS = 5000;

/** The buyer has clicked. */
export const clicked = (purchase: Purchase, wallMs: number): Purchase => ({
  ...purchase,
  step: 'asking',
  clickedAtMs: wallMs,
  tries: 0,
  problem: null,
});

/** The server, or nobody, has answered a try. */
export function answered(purchase: Purchase, answer: Answer): Purchase {
  if (purchase.step !== 'asking') return purchase;
  if (answer.ok) {
    const said = found(purchase, answer.body);
    return said === purchase ? answered(purchase, NOTHING_SAID) : said;
  }
  const problem: Problem = { code: knownCode(answer.code), retryAfterMs: answer.retryAfterMs };
  const meaning = MEANINGS[problem.code];
  switch (meaning) {
    case 'again':
    case 'unsure':
      return { ...purchase, problem, tries: purchase.tries + 1, isUnsure: purchase.isUnsure || meaning === 'unsure' };
    case 'again_soon':
      if ((problem.retryAfterMs ?? Infinity) <= SOON_MS) return { ...purchase, problem, tries: purchase.tries + 1 };
      return refused(purchase, problem);
    case 'look':
      return { ...purchase, step: 'checking', problem };
    case 'over':
      // A try that was lost may still be on its way through another server: it is looked for once more.
      return purchase.isUnsure ? { ...purchase, step: 'checking', problem } : refused(purchase, problem);
  }
}

/** A success that names no status: something on the way has spoken in the place of the server. */
const NOTHING_SAID: Answer = { ok: false, code: 'no_answer', retryAfterMs: null };

/** Nothing comes of the click, so a page that is loaded again does not go on with it. */
const refused = (purchase: Purchase, problem: Problem): Purchase => ({
  ...purchase,
  step: 'ready',
  clickedAtMs: null,
  isUnsure: false,
  problem,
});

/** So long after a click a page that was loaded again goes on with it by itself, ms; later the buyer decides. */
const STILL_WANTED_MS = 30_000;

/** Then it is not asked again; the click is kept, for a page that is loaded when it would be answered. */
const REFUSED_FOR_GOOD: readonly ProblemCode[] = ['denied', 'bad_signature', 'not_found'];

/** The status of a purchase that may have been accepted was read. */
export function checked(purchase: Purchase, answer: Answer, wallMs: number): Purchase {
  if (purchase.step !== 'checking' && purchase.step !== 'held') return purchase;
  if (answer.ok) return found(purchase, answer.body);
  if (answer.code !== 'purchase_not_found') {
    const problem: Problem = { code: knownCode(answer.code), retryAfterMs: answer.retryAfterMs };
    return REFUSED_FOR_GOOD.includes(problem.code) ? { ...purchase, step: 'ready', problem } : purchase;
  }
  if (purchase.step === 'held') return purchase;
  if (purchase.problem !== null) return refused(purchase, purchase.problem);
  const isWanted = wallMs - (purchase.clickedAtMs ?? -Infinity) < STILL_WANTED_MS;
  return { ...purchase, step: isWanted ? 'asking' : 'ready', isUnsure: false };
}

/** A try that is under way is heard of no more: the line is gone, or the buyer signs in anew. */
export const interrupted = (purchase: Purchase): Purchase =>
  purchase.step === 'asking' ? { ...purchase, isUnsure: true } : purchase;

/** Of a click that is looked for, and not repeated. */
const LONG_AGO_MS = 0;

/**
 * Gives up after too many tries. One of them may have arrived, so it is looked for; when there is none, the buyer decides, also
 * on a page that is loaded again. The key stays, so the next click is the same purchase.
 */
export const gaveUp = (purchase: Purchase): Purchase =>
  purchase.step === 'asking' ? { ...interrupted(purchase), step: 'checking', clickedAtMs: LONG_AGO_MS } : purchase;

/** The buyer has signed in again: what had to do with the sign-in before is settled, and a click that is fresh goes on. */
export const signedInAgain = (purchase: Purchase): Purchase => {
  const { problem } = purchase;
  return { ...interrupted(purchase), problem: problem?.code === 'unauthorized' ? null : problem };
};

/** What a server says of the purchase: the answer to a try, its status, or a step of its stream. */
export function found(purchase: Purchase, body: Success['body']): Purchase {
  const { status, orderId, reason } = body ?? {};
  const known = { ...purchase, problem: null, isUnsure: false };
  switch (status) {
    case 'pending':
      return purchase.step === 'ordered' || purchase.step === 'failed' ? purchase : { ...known, step: 'held' };
    case 'ordered':
      return { ...known, step: 'ordered', orderId: String(orderId) };
    case 'failed':
      return { ...known, step: 'failed', orderId: String(orderId), reason: String(reason) };
    default:
      return purchase; // `unknown`, while the api is spared
  }
}

/** What the tab keeps of it. */
export interface KeptPurchase {
  readonly key: string;
  readonly quantity: number;
  readonly clickedAtMs: number | null;
}

export const keptOf = ({ key, quantity, clickedAtMs }: Purchase): KeptPurchase => ({ key, quantity, clickedAtMs });

/** The purchase of a page that is loaded again: what was clicked may be on its way, or done. */
export function restored({ key, quantity, clickedAtMs }: KeptPurchase): Purchase {
  const purchase = newPurchase(key, quantity);
  return clickedAtMs === null ? purchase : { ...purchase, clickedAtMs, step: 'checking' };
}

import type { Answer, Success } from '../shared/ask.js';
import { knownCode, MEANINGS, type ProblemCode } from './problem-codes.js';

/**
 * A purchase, from the key that is made before the click to its order. The transitions are pure functions. `Page`
 * decides what is sent when and how often, and stores the key in the tab before it sends anything.
 * - `ready`: nothing is under way; `problem` says why the last click failed, if there was a click
 * - `asking`: the buyer has clicked; the purchase is sent again, with the same key, until it gets a usable answer
 * - `checking`: the purchase may have been accepted without our knowledge, so its status is read first. If the server
 *   refuses to tell, the purchase becomes `ready` again, keeps `clickedAtMs`, and the page looks for its order
 * - `held`: 202; units are held for this buyer, and an order will follow
 * - `ordered`, `failed`: the purchase has ended, as its order says
 */
export interface Purchase {
  readonly step: 'ready' | 'asking' | 'checking' | 'held' | 'ordered' | 'failed';
  /** The Idempotency-Key. A new key is made when this purchase has ended and the buyer wants another purchase. */
  readonly key: string;
  readonly quantity: number;
  /** When the buyer clicked, wall time, ms. Null before the click. */
  readonly clickedAtMs: number | null;
  /** Failed attempts since the click. */
  readonly tries: number;
  /** While `asking`: why the purchase is sent again. While `ready`: why the last click failed. */
  readonly problem: Problem | null;
  /** True if an attempt or its answer was lost. */
  readonly isUnsure: boolean;
  readonly orderId: string | null;
  /** Why the purchase failed, as named by the API. */
  readonly reason: string | null;
}

export interface Problem {
  readonly code: ProblemCode;
  /** Delay that the server asks for. Null if the server asks for none. */
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

/**
 * If the opening is this near, ms, a click before it is repeated. The server says how near it is with `Retry-After`.
 */
const SOON_MS = 5000;

export const clicked = (purchase: Purchase, wallMs: number): Purchase => ({
  ...purchase,
  step: 'asking',
  clickedAtMs: wallMs,
  tries: 0,
  problem: null,
});

/** Handles the answer to an attempt, or its absence. */
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
      // A lost attempt may still be on its way through another server, so the purchase is looked up once more.
      return purchase.isUnsure ? { ...purchase, step: 'checking', problem } : refused(purchase, problem);
  }
}

/** Stands for a success without a status, which came from something between page and server. */
const NOTHING_SAID: Answer = { ok: false, code: 'no_answer', retryAfterMs: null };

/** Ends the click without a purchase, so a reloaded page does not resume it. */
const refused = (purchase: Purchase, problem: Problem): Purchase => ({
  ...purchase,
  step: 'ready',
  clickedAtMs: null,
  isUnsure: false,
  problem,
});

/** How long after a click a reloaded page resumes it on its own, ms. After that the buyer decides. */
const STILL_WANTED_MS = 30_000;

/** Codes that stop the look-up. The click is kept for a page that is loaded once the server answers again. */
const REFUSED_FOR_GOOD: readonly ProblemCode[] = ['denied', 'bad_signature', 'not_found'];

/** Handles the status of a purchase that may have been accepted. */
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

/** Handles an attempt whose answer will not arrive, because the connection is gone or the buyer signs in again. */
export const interrupted = (purchase: Purchase): Purchase =>
  purchase.step === 'asking' ? { ...purchase, isUnsure: true } : purchase;

/** Time of a click that is looked up but not repeated. */
const LONG_AGO_MS = 0;

/**
 * Gives up after too many attempts. An attempt may have arrived, so the purchase is looked up. If the server knows no
 * purchase, the buyer decides, even on a reloaded page. The key stays, so the next click repeats the same purchase.
 */
export const gaveUp = (purchase: Purchase): Purchase =>
  purchase.step === 'asking' ? { ...interrupted(purchase), step: 'checking', clickedAtMs: LONG_AGO_MS } : purchase;

/** Handles a new sign-in of the buyer: problems of the old sign-in are settled, and a recent click is resumed. */
export const signedInAgain = (purchase: Purchase): Purchase => {
  const { problem } = purchase;
  return { ...interrupted(purchase), problem: problem?.code === 'unauthorized' ? null : problem };
};

/** Handles a server's report about the purchase: the answer to an attempt, its status, or a step of its stream. */
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
      return purchase; // `unknown`, while the API is degraded
  }
}

/** The part of a purchase that the tab keeps. */
export interface KeptPurchase {
  readonly key: string;
  readonly quantity: number;
  readonly clickedAtMs: number | null;
}

export const keptOf = ({ key, quantity, clickedAtMs }: Purchase): KeptPurchase => ({ key, quantity, clickedAtMs });

/** Restores the purchase of a reloaded page. Its click may be on its way, or already completed. */
export function restored({ key, quantity, clickedAtMs }: KeptPurchase): Purchase {
  const purchase = newPurchase(key, quantity);
  return clickedAtMs === null ? purchase : { ...purchase, clickedAtMs, step: 'checking' };
}

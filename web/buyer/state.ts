import type { Notification } from '../../src/contract/orders.js';
import type { Answer } from '../shared/ask.js';
import { learnTime, suspectTime, type ServerClock } from '../shared/server-clock.js';
import type { SignIn } from '../shared/sign-in.js';
import { readCoupons, type CouponChoice } from './coupons.js';
import { isBought, isOpen, readOrder, stateInEvent, type OrderView } from './order.js';
import { knownCode, type ProblemCode } from './problem-codes.js';
import {
  answered,
  checked,
  clicked,
  found,
  gaveUp,
  interrupted,
  newPurchase,
  signedInAgain,
  type Problem,
  type Purchase,
} from './purchase.js';
import { isBeforeOpening, offerOf, readSale, type Offer, type Proof, type SaleView } from './sale.js';

/** The place of a buyer in the waiting room of a sale. */
export type Place =
  | { readonly status: 'outside' | 'joining' }
  /** Both are null until they are known. */
  | { readonly status: 'waiting'; readonly position: number | null; readonly estimateMs: number | null }
  | { readonly status: 'admitted'; readonly pass: string; /** Unix ms of the server. */ readonly endsAtMs: number }
  /** The sale has no waiting room. */
  | { readonly status: 'no_queue' };

/** The purchase token of a buyer. */
type PurchaseToken =
  | { readonly status: 'none' }
  | {
      readonly status: 'fetched';
      /** Null: the sale needs no token. */ readonly token: string | null;
      readonly endsAtMs: number | null;
    };

/** A request of the buyer to pay or cancel the order. */
interface OrderMove {
  readonly move: 'pay' | 'cancel';
  /** Key of the charge. It is the same for every attempt until an attempt is declined. */
  readonly key: string;
  readonly tries: number;
}

/** A change of one of the buyer's orders since their last visit. */
export interface News {
  readonly id: string;
  readonly type: Notification['type'];
  readonly orderId: string;
  readonly atMs: number;
}

/** Everything that the page knows. Times are Unix ms of the server unless a name says otherwise. */
export interface PageState {
  readonly saleId: string;
  /** Null before the first read. */
  readonly sale: SaleView | null;
  /** Why the last read of the sale failed. */
  readonly saleProblem: ProblemCode | null;
  /** When a purchase found no units. Answers that were read before are not trusted if they claim units. */
  readonly soldOutUntilMs: number;
  /** The sale was sold out before, and units have returned. */
  readonly isBack: boolean;
  readonly clock: ServerClock | null;
  readonly signIn: SignIn | null;
  /** The server no longer accepts the token. */
  readonly signInEnded: boolean;
  /** A link has brought the sign-in of another buyer. The current buyer has to confirm the switch. */
  readonly offeredSignIn: SignIn | null;
  /** Proofs that the API has asked for although the sale did not list them. */
  readonly alsoAsksFor: readonly Proof[];
  readonly place: Place;
  readonly purchaseToken: PurchaseToken;
  /** Why the place in the waiting room or the token is still missing. */
  readonly proofProblem: Problem | null;
  readonly purchase: Purchase;
  /** When the buyer may buy again after unpaid orders. */
  readonly pausedUntilMs: number;
  readonly order: OrderView | null;
  /** Coupons that the order can use. */
  readonly coupons: readonly CouponChoice[];
  /** The chosen coupon. */
  readonly coupon: CouponChoice | null;
  readonly move: OrderMove | null;
  readonly moveProblem: ProblemCode | null;
  /** Newest first. Read only after the sale. */
  readonly news: readonly News[];
  readonly isOnline: boolean;
  readonly isVisible: boolean;
  /** Increases whenever the sale should be read at once. */
  readonly looks: number;
}

export type PageEvent =
  | { readonly type: 'sale_read'; readonly answer: Answer }
  | { readonly type: 'look' }
  | { readonly type: 'clocks_parted' }
  | { readonly type: 'signed_in'; readonly signIn: SignIn; readonly purchase: Purchase }
  | { readonly type: 'sign_in_offered'; readonly signIn: SignIn }
  | { readonly type: 'offer_refused' }
  | { readonly type: 'quantity'; readonly quantity: number }
  | { readonly type: 'buy'; readonly wallMs: number; readonly nowMs: number }
  | { readonly type: 'answered'; readonly answer: Answer; readonly nowMs: number }
  | { readonly type: 'checked'; readonly answer: Answer; readonly wallMs: number }
  | { readonly type: 'gave_up' }
  | { readonly type: 'step'; readonly event: string; readonly body: Readonly<Record<string, unknown>> }
  | { readonly type: 'order_read'; readonly answer: Answer }
  | { readonly type: 'orders_read'; readonly answer: Answer }
  | { readonly type: 'coupons_read'; readonly answer: Answer }
  | { readonly type: 'coupon'; readonly code: string }
  | { readonly type: 'news_read'; readonly answer: Answer }
  | { readonly type: 'news_seen' }
  | { readonly type: 'move'; readonly move: 'pay' | 'cancel'; readonly key: string }
  | { readonly type: 'moved'; readonly answer: Answer }
  | { readonly type: 'again'; readonly key: string }
  | { readonly type: 'queue'; readonly answer: Answer }
  | { readonly type: 'purchase_token'; readonly answer: Answer }
  | { readonly type: 'pass_ended' }
  | { readonly type: 'signed_out' }
  | { readonly type: 'online'; readonly isOnline: boolean }
  | { readonly type: 'visible'; readonly isVisible: boolean };

export const newPage = (saleId: string, key: string): PageState => ({
  saleId,
  sale: null,
  saleProblem: null,
  soldOutUntilMs: 0,
  isBack: false,
  clock: null,
  signIn: null,
  signInEnded: false,
  offeredSignIn: null,
  alsoAsksFor: [],
  place: { status: 'outside' },
  purchaseToken: { status: 'none' },
  proofProblem: null,
  purchase: newPurchase(key),
  pausedUntilMs: 0,
  order: null,
  coupons: [],
  coupon: null,
  move: null,
  moveProblem: null,
  news: [],
  isOnline: true,
  isVisible: true,
  looks: 0,
});

export function reduce(state: PageState, event: PageEvent): PageState {
  switch (event.type) {
    case 'sale_read':
      return saleRead(state, event.answer);
    case 'look':
      return { ...state, looks: state.looks + 1 };
    case 'clocks_parted':
      return { ...state, clock: suspectTime(state.clock), looks: state.looks + 1 };
    case 'signed_in':
      return signedIn(state, event.signIn, event.purchase);
    case 'sign_in_offered':
      return { ...state, offeredSignIn: event.signIn };
    case 'offer_refused':
      return { ...state, offeredSignIn: null };
    case 'quantity':
      return state.purchase.step === 'ready'
        ? { ...state, purchase: { ...state.purchase, quantity: event.quantity, problem: null } }
        : state;
    case 'buy':
      return buyPressed(state, event.wallMs, event.nowMs);
    case 'answered':
      return purchaseAnswered(state, event.answer, event.nowMs);
    case 'checked':
      return statusRead(state, event.answer, event.wallMs);
    case 'gave_up':
      return { ...state, purchase: gaveUp(state.purchase) };
    case 'step':
      return stepped(state, event.event, event.body);
    case 'order_read':
      return orderRead(state, event.answer);
    case 'orders_read':
      return ordersRead(state, event.answer);
    case 'coupons_read':
      if (!event.answer.ok || state.order === null) return state;
      return { ...state, coupons: readCoupons(event.answer.body, state.order) };
    case 'coupon':
      if (state.move !== null) return state;
      return { ...state, coupon: state.coupons.find(({ code }) => code === event.code) ?? null, moveProblem: null };
    case 'news_read':
      return newsRead(state, event.answer);
    case 'news_seen':
      return { ...state, news: [] };
    case 'move':
      if (state.order?.state !== 'pending_payment' || state.move !== null || state.signInEnded) return state;
      return { ...state, move: { move: event.move, key: event.key, tries: 0 }, moveProblem: null };
    case 'moved':
      return moved(state, event.answer);
    case 'again':
      return mayBuyAnother(state) ? another(state, event.key) : state;
    case 'queue':
      return queueAnswered(state, event.answer);
    case 'purchase_token':
      return tokenAnswered(state, event.answer);
    case 'pass_ended':
      return state.place.status === 'admitted' ? { ...state, place: { status: 'outside' } } : state;
    case 'signed_out':
      return { ...state, signInEnded: true };
    case 'online':
      return onlineChanged(state, event.isOnline);
    case 'visible':
      return { ...state, isVisible: event.isVisible, looks: state.looks + (event.isVisible ? 1 : 0) };
  }
}

function onlineChanged(state: PageState, isOnline: boolean): PageState {
  if (isOnline) return { ...state, isOnline, looks: state.looks + 1 };
  return { ...state, isOnline, purchase: interrupted(state.purchase) };
}

function saleRead(state: PageState, answer: Answer): PageState {
  if (!answer.ok) {
    // Keeps showing the last known sale, unless the sale turns out not to exist.
    const code = knownCode(answer.code);
    return code === 'not_found' ? { ...state, sale: null, saleProblem: code } : { ...state, saleProblem: code };
  }
  const { body, sentMs, receivedMs, keptMs } = answer;
  const read = readSale(body, state.sale);
  const serverMs = Date.parse(String(body?.serverTime));
  const isKept = typeof body?.ageMs === 'number'; // the API has kept this answer for as long as it says
  const sample = { serverMs, sentMs, receivedMs, keptMs: keptMs + (isKept ? Number(body?.ageMs) : 0) };
  const clock = Number.isNaN(serverMs) ? state.clock : learnTime(state.clock, sample);
  if (read === null) return { ...state, clock, saleProblem: 'degraded' };
  const wasSoldOut = state.sale?.stock === 'none';
  const isSoldOut = read.stock === 'unknown' ? wasSoldOut : read.serverMs < state.soldOutUntilMs;
  const sale: SaleView = isSoldOut ? { ...read, stock: 'none' } : read;
  const isBack = sale.stock !== 'none' && (state.isBack || (wasSoldOut && sale.state === 'open'));
  return {
    ...state,
    clock,
    sale,
    isBack,
    saleProblem: null,
    purchase: withoutOutdated(state.purchase, sale, wasSoldOut),
  };
}

/** Drops the reason of a failed click when the sale itself now states the reason, or shows that it is over. */
function withoutOutdated(purchase: Purchase, sale: SaleView, wasSoldOut: boolean): Purchase {
  const { step, problem } = purchase;
  if (step !== 'ready' || problem === null) return purchase;
  const isOutdated =
    problem.code === 'sold_out'
      ? wasSoldOut && sale.stock !== 'none'
      : problem.code === (isBeforeOpening(sale) ? 'not_open' : sale.state);
  return isOutdated ? { ...purchase, problem: null } : purchase;
}

/** Starts afresh for another buyer in the same tab. */
function signedIn(state: PageState, signIn: SignIn, purchase: Purchase): PageState {
  // The same token again changes nothing: a server that has refused it would refuse it again.
  if (state.signIn?.token === signIn.token)
    return state.offeredSignIn === null ? state : { ...state, offeredSignIn: null };
  const known = { ...state, signIn, signInEnded: false, offeredSignIn: null };
  if (state.signIn?.userId === signIn.userId) {
    const moveProblem = state.moveProblem === 'unauthorized' ? null : state.moveProblem;
    const proofProblem = state.proofProblem?.code === 'unauthorized' ? null : state.proofProblem;
    return { ...known, purchase: signedInAgain(state.purchase), moveProblem, proofProblem };
  }
  const { place, purchaseToken, proofProblem, order, coupons, coupon, move, moveProblem, pausedUntilMs } = newPage(
    state.saleId,
    '',
  );
  const ofBuyer = { order, coupons, coupon, move, moveProblem, pausedUntilMs };
  return { ...known, purchase, place, purchaseToken, proofProblem, ...ofBuyer };
}

/**
 * Handles a press of the button. A press after a refusal drops the last problem, so that only the other obstacles
 * count.
 */
function buyPressed(state: PageState, wallMs: number, nowMs: number): PageState {
  const { purchase } = state;
  const isAgain = hindrance(state, nowMs) === 'refused';
  const next = isAgain ? { ...state, purchase: { ...purchase, problem: null } } : state;
  return hindrance(next, nowMs) === null ? { ...next, purchase: clicked(purchase, wallMs) } : next;
}

const SOLD_OUT_BELIEVED_MS = 1500; // an API process reads the stock again after a second

function purchaseAnswered(state: PageState, answer: Answer, nowMs: number): PageState {
  const purchase = answered(state.purchase, answer);
  const next = refusedSignIn({ ...state, purchase }, answer);
  if (answer.ok) return next;
  switch (answer.code) {
    case 'sold_out': {
      const sale = state.sale && { ...state.sale, stock: 'none' as const };
      return { ...next, sale, isBack: false, soldOutUntilMs: nowMs + SOLD_OUT_BELIEVED_MS };
    }
    case 'queue_pass_needed':
      return { ...next, alsoAsksFor: withProof(state, 'queue_pass'), place: { status: 'outside' } };
    case 'purchase_token_needed':
      return { ...next, alsoAsksFor: withProof(state, 'purchase_token'), purchaseToken: { status: 'none' } };
    case 'bad_signature':
      return { ...next, alsoAsksFor: withProof(state, 'signature') };
    case 'unpaid_pause':
      return { ...next, pausedUntilMs: nowMs + (answer.retryAfterMs ?? 0) };
    case 'not_open':
    case 'closed':
    case 'paused':
    case 'loading':
    case 'not_enough_left':
      return { ...next, looks: state.looks + 1 };
    default:
      return next;
  }
}

function statusRead(state: PageState, answer: Answer, wallMs: number): PageState {
  const next = refusedSignIn({ ...state, purchase: checked(state.purchase, answer, wallMs) }, answer);
  const isSigned = !answer.ok && answer.code === 'bad_signature';
  return isSigned ? { ...next, alsoAsksFor: withProof(state, 'signature') } : next;
}

const withProof = ({ alsoAsksFor }: PageState, proof: Proof): readonly Proof[] =>
  alsoAsksFor.includes(proof) ? alsoAsksFor : [...alsoAsksFor, proof];

function refusedSignIn(state: PageState, answer: Answer): PageState {
  if (answer.ok || answer.code !== 'unauthorized') return state;
  return { ...state, signInEnded: true };
}

function stepped(state: PageState, event: string, body: Readonly<Record<string, unknown>>): PageState {
  const purchase = found(state.purchase, body);
  const orderState = stateInEvent(typeof body.orderState === 'string' ? body.orderState : event);
  const { order } = state;
  if (order === null || orderState === null || !isOpen(order.state)) return { ...state, purchase };
  return { ...state, purchase, order: { ...order, state: orderState } };
}

function orderRead(state: PageState, answer: Answer): PageState {
  const next = refusedSignIn(state, answer);
  const order = answer.ok ? readOrder(answer.body, state.order) : null;
  return order === null || isOlder(order, state.order) ? next : { ...next, order };
}

/**
 * True if the order is outdated. An ended order never reopens, so an open state comes from a cache or an earlier
 * moment.
 */
const isOlder = (order: OrderView, known: OrderView | null): boolean =>
  known !== null && known.orderId === order.orderId && isOpen(order.state) && !isOpen(known.state);

/** Shows the existing order of this sale, if there is one, to a buyer who may buy no more units. */
function ordersRead(state: PageState, answer: Answer): PageState {
  if (!answer.ok || !Array.isArray(answer.body?.orders)) return refusedSignIn(state, answer);
  const live = answer.body.orders
    .map((body: Readonly<Record<string, unknown>>) => readOrder(body, null))
    .filter((order: OrderView | null) => order?.saleId === state.saleId);
  const order: OrderView | null | undefined =
    live.find((one: OrderView | null) => one?.state === 'pending_payment') ??
    live.find((one: OrderView | null) => one !== null && isBought(one.state));
  if (!order) return state;
  const { orderId, requestId: key, quantity } = order;
  const purchase: Purchase = { ...newPurchase(key, quantity), clickedAtMs: 0, step: 'ordered', orderId };
  return { ...state, order, purchase };
}

const NEWS_TYPES: readonly News['type'][] = [
  ...(['order.created', 'order.failed', 'order.paid', 'order.cancelled', 'order.expired'] as const),
  ...(['order.refunding', 'order.refunded', 'order.returned', 'order.refund_failed'] as const),
  ...(['order.disputed', 'order.dispute_won'] as const),
];

function newsRead(state: PageState, answer: Answer): PageState {
  if (!answer.ok) return refusedSignIn(state, answer);
  const { notifications = [] } = (answer.body ?? {}) as { readonly notifications?: readonly Notification[] };
  const known = notifications.filter(({ type }) => NEWS_TYPES.includes(type)); // a newer API may send other states
  const news = known.map(({ notificationId: id, type, orderId, at }) => ({
    ...{ id, type, orderId },
    atMs: Date.parse(at),
  }));
  return { ...state, news };
}

const TRIED_AGAIN: readonly ProblemCode[] = [
  'no_answer',
  'outcome_unknown',
  'internal',
  'payment_in_progress',
  'unavailable',
  'overloaded',
  'degraded',
  'rate_limited',
  'request_timeout',
];
const MOVE_TRIES_MAX = 8;

function moved(state: PageState, answer: Answer): PageState {
  if (state.move === null) return state;
  if (answer.ok) {
    const order = readOrder(answer.body, state.order) ?? state.order;
    return { ...state, order, move: null, moveProblem: null };
  }
  const code = knownCode(answer.code);
  const tries = state.move.tries + 1;
  if (TRIED_AGAIN.includes(code) && tries < MOVE_TRIES_MAX) return { ...state, move: { ...state.move, tries } };
  // A refused coupon can no longer be chosen.
  const coupons = code === 'coupon_refused' ? state.coupons.filter((one) => one !== state.coupon) : state.coupons;
  const coupon = code === 'coupon_refused' ? null : state.coupon;
  return refusedSignIn({ ...state, coupons, coupon, move: null, moveProblem: code }, answer);
}

function queueAnswered(state: PageState, answer: Answer): PageState {
  if (!answer.ok) {
    const problem: Problem = { code: knownCode(answer.code), retryAfterMs: answer.retryAfterMs };
    const isOver = problem.code === 'sold_out' && state.sale !== null;
    const sale = isOver ? { ...(state.sale as SaleView), stock: 'none' as const } : state.sale;
    const place: Place =
      state.place.status === 'waiting' && problem.code !== 'ticket_not_found' && !isOver
        ? state.place
        : { status: 'joining' };
    return refusedSignIn({ ...state, sale, place, proofProblem: problem }, answer);
  }
  const { status, position, estimateMs, pass, passEndsAt } = answer.body ?? {};
  const numberOr = (value: unknown): number | null => (typeof value === 'number' ? value : null);
  const known = { ...state, proofProblem: null };
  if (status === 'waiting') {
    const place: Place = { status, position: numberOr(position), estimateMs: numberOr(estimateMs) };
    return { ...known, place };
  }
  if (status === 'admitted') {
    return { ...known, place: { status, pass: String(pass), endsAtMs: Date.parse(String(passEndsAt)) } };
  }
  return status === 'no_queue' ? { ...known, place: { status } } : state;
}

function tokenAnswered(state: PageState, answer: Answer): PageState {
  if (!answer.ok) {
    const proofProblem: Problem = { code: knownCode(answer.code), retryAfterMs: answer.retryAfterMs };
    return refusedSignIn({ ...state, proofProblem }, answer);
  }
  const { token, endsAt } = answer.body ?? {};
  const endsAtMs = Date.parse(String(endsAt));
  const purchaseToken: PurchaseToken = {
    status: 'fetched',
    token: typeof token === 'string' ? token : null,
    endsAtMs: Number.isNaN(endsAtMs) ? null : endsAtMs,
  };
  return { ...state, purchaseToken, proofProblem: null };
}

function another(state: PageState, key: string): PageState {
  const { order, coupons, coupon, move, moveProblem } = newPage(state.saleId, '');
  return { ...state, purchase: newPurchase(key), order, coupons, coupon, move, moveProblem, looks: state.looks + 1 };
}

/** True if the purchase has ended and the limit leaves units, so that the next click may be a new purchase. */
export function mayBuyAnother({ purchase, order, sale }: PageState): boolean {
  if (purchase.step !== 'ordered' || order === null) return purchase.step === 'failed';
  if (isBought(order.state)) return order.quantity < (sale?.limitPerBuyer ?? Infinity);
  return !isOpen(order.state);
}

export const asksFor = ({ sale, alsoAsksFor }: PageState, proof: Proof): boolean =>
  alsoAsksFor.includes(proof) || sale?.asksFor.includes(proof) === true;

/** Refusals that another click would not change. */
const FINAL: readonly ProblemCode[] = ['denied', 'closed', 'not_found'];

/** Why a buyer cannot buy at the moment. The page shows the first reason. */
export type Hindrance =
  | 'no_sale'
  | Exclude<Offer, 'open'>
  | 'signature'
  | 'signed_out'
  | 'refused'
  | 'paused_buyer'
  | 'offline'
  | 'waiting'
  | 'token'
  | 'under_way';

export function hindrance(state: PageState, nowMs: number): Hindrance | null {
  const { sale, purchase, place, purchaseToken, signIn } = state;
  if (sale === null) return 'no_sale';
  if (purchase.step !== 'ready') return 'under_way';
  const offer = offerOf(sale, nowMs);
  if (offer === 'closed') return offer;
  if (asksFor(state, 'signature')) return 'signature';
  if (signIn === null || state.signInEnded) return 'signed_out';
  if (purchase.problem !== null && isFinal(purchase)) return 'refused';
  if (offer !== 'open') return offer;
  if (nowMs < state.pausedUntilMs) return 'paused_buyer';
  if (asksFor(state, 'queue_pass') && !isLetIn(place, nowMs)) return 'waiting';
  if (asksFor(state, 'purchase_token') && purchaseToken.status !== 'fetched') return 'token';
  return state.isOnline ? null : 'offline';
}

export const isLetIn = (place: Place, nowMs: number): boolean =>
  place.status === 'no_queue' || (place.status === 'admitted' && nowMs < place.endsAtMs);

function isFinal({ problem, quantity }: Purchase): boolean {
  if (problem === null) return false;
  return FINAL.includes(problem.code) || (problem.code === 'limit_reached' && quantity === 1);
}

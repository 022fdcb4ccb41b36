import { laneOf } from '../../src/core/bucket.js';
import { ask, failureIn, send, type Answer, type Request } from '../shared/ask.js';
import { backOffMs } from '../client/back-off.js';
import { EventStreamReader } from '../client/event-stream.js';
import { clockErrorMs, clocksParted, serverTimeMs, type Moment } from '../shared/server-clock.js';
import { readToken, type SignIn } from '../shared/sign-in.js';
import type { TabStorage } from '../shared/tab-storage.js';
import { afterListening, listenAgainIn, LISTENING, LONG_POLL_SECONDS, SILENT_MS, type Listened } from './channel.js';
import { isOpen } from './order.js';
import { keptOf, newPurchase, restored, type KeptPurchase, type Purchase } from './purchase.js';
import { isBeforeOpening } from './sale.js';
import { asksFor, isLetIn, newPage, reduce, type PageEvent, type PageState } from './state.js';

/** The browser features that the page needs. Tests pass their own. */
export interface Browser {
  readonly fetch: typeof globalThis.fetch;
  readonly monotonicMs: () => number;
  readonly wallMs: () => number;
  /**
   * Ends early, without an error, when the signal aborts. `exact`: ends on time even while the tab is in the
   * background.
   */
  readonly sleep: (ms: number, signal: AbortSignal, exact?: boolean) => Promise<void>;
  /** Returns a number from 0 up to 1. */
  readonly random: () => number;
  readonly newKey: () => string;
  /** Storage of the tab, which survives only a reload. */
  readonly storage: TabStorage;
}

const ACTIVITIES = [
  ...(['look', 'ask', 'check', 'follow', 'order', 'orders'] as const),
  ...(['coupons', 'news', 'move', 'queue', 'token'] as const),
];
/** A task that runs while the state asks for it. The task restarts when its name in `activitiesOf` changes. */
type Activity = (typeof ACTIVITIES)[number];

/** Progress of the streams about a purchase. */
interface Heard {
  lastEventId: string | null;
  /** Wait before the next stream that the last stream asked for, ms. */
  retryMs: number | null;
}

const ANSWER_MAX_MS = 15_000;
/** A stream reports the state of the purchase at once. A stream without a first report is held back on its way. */
const FIRST_BYTES_MS = 6000;
/** A stream that was open for less time was cut on its way. */
const OPEN_MS = 1000;
/** A payment takes longer, because it goes through a provider. */
const MOVE_MAX_MS = 30_000;
/** How long after its click a purchase is sent again. After that the buyer decides. */
const ASK_MAX_MS = 120_000;
/** How long a lost attempt may take to arrive; until then a look-up may miss it. */
const LOST_MS = 2000;
/** How long before the opening the page joins the waiting room and fetches a token. */
const PREPARE_MS = 600_000;
/**
 * Number of reads past all caches, in a row, until the time of the server is known to CLOCK_ERROR_MS. They begin
 * PREPARE_MS before the opening.
 */
const FRESH_LOOKS_MAX = 4;
const FRESH_LOOK_MS = 250;
const CLOCK_ERROR_MS = 40;
/**
 * Number of reads of the buyer's orders, within half a minute. A buyer who is told to have bought the maximum, but has
 * no order, may have a purchase whose order is still being written.
 */
const ORDERS_READ_MAX = 6;

/**
 * Limits for the news of a buyer who returns after the sale: items shown, tries, and the spread of the first read, ms.
 */
const NEWS_SHOWN = 5;
const NEWS_TRIES_MAX = 5;
const NEWS_SPREAD_MS = 20_000;

const SIGN_IN = 'seckill:token';

/**
 * The page without its view. It holds the state, stores the data that must survive a reload, and performs the tasks
 * that the state asks for. All decisions are pure functions of the state (`state.ts`, `purchase.ts`, `channel.ts`).
 * This class only does what takes time.
 */
export class Page {
  readonly #browser: Browser;
  readonly #listeners = new Set<() => void>();
  readonly #running = new Map<Activity, { readonly name: string; readonly stop: AbortController }>();
  #state: PageState;
  #moment: Moment;

  constructor(saleId: string, browser: Browser) {
    this.#browser = browser;
    this.#state = newPage(saleId, browser.newKey());
    this.#moment = { monotonicMs: browser.monotonicMs(), wallMs: browser.wallMs() };
  }

  get state(): PageState {
    return this.#state;
  }

  /**
   * Returns the Unix time on the server, ms. Uses the browser's clock until a better time is known, and then only to
   * show the time.
   */
  nowMs(): number {
    const { clock } = this.#state;
    return clock === null ? this.#browser.wallMs() : serverTimeMs(clock, this.#browser.monotonicMs());
  }

  /** @param handedOver the sign-in that the page was opened with; null: the sign-in of the tab, if any */
  start(handedOver: SignIn | null): void {
    const kept = readToken(this.#browser.storage.read(SIGN_IN) ?? '');
    if (kept !== null && kept.userId !== handedOver?.userId) this.#signIn(kept);
    if (handedOver !== null) this.handOver(handedOver);
    else if (kept === null) this.#sync();
  }

  stop(): void {
    for (const { stop } of this.#running.values()) stop.abort();
    this.#running.clear();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Takes the sign-in of a link. Anyone can make such a link, so the current buyer confirms before the page switches to
   * another buyer.
   */
  handOver(signIn: SignIn): void {
    const known = this.#state.signIn;
    if (known === null || known.userId === signIn.userId) this.signIn(signIn);
    else this.#dispatch({ type: 'sign_in_offered', signIn });
  }

  /** Decides whether the buyer of a link replaces the current buyer. */
  decideOffer(isTaken: boolean): void {
    const { offeredSignIn } = this.#state;
    if (offeredSignIn !== null && isTaken) this.signIn(offeredSignIn);
    else this.#dispatch({ type: 'offer_refused' });
  }

  signIn(signIn: SignIn): void {
    this.#browser.storage.write(SIGN_IN, signIn.token);
    this.#signIn(signIn);
  }

  buy(): void {
    this.#dispatch({ type: 'buy', wallMs: this.#browser.wallMs(), nowMs: this.nowMs() });
  }

  /** Reads the sale now. */
  lookAgain(): void {
    this.#dispatch({ type: 'look' });
  }

  setQuantity(quantity: number): void {
    this.#dispatch({ type: 'quantity', quantity });
  }

  /** Stops sending and looks up the result. The next click repeats the same purchase. */
  giveUp(): void {
    this.#dispatch({ type: 'gave_up' });
  }

  /** Chooses a coupon for the payment. @param code empty for no coupon */
  chooseCoupon(code: string): void {
    this.#dispatch({ type: 'coupon', code });
  }

  move(move: 'pay' | 'cancel'): void {
    this.#dispatch({ type: 'move', move, key: move === 'pay' ? this.#payKey() : '' });
  }

  /** Marks the shown notifications, and all older ones, as read. If the request is lost, they are shown again. */
  newsSeen(): void {
    const [newest] = this.#state.news;
    if (newest === undefined) return;
    const request = { method: 'POST', path: '/v1/me/notifications/read', body: { upTo: newest.id } } as const;
    void this.#request(request, new AbortController().signal);
    this.#dispatch({ type: 'news_seen' });
  }

  /** Makes the next click a new purchase. */
  again(): void {
    this.#dispatch({ type: 'again', key: this.#browser.newKey() });
  }

  setOnline(isOnline: boolean): void {
    this.#dispatch({ type: 'online', isOnline });
  }

  setVisible(isVisible: boolean): void {
    this.#dispatch({ type: 'visible', isVisible });
    this.watchClocks();
  }

  /** Must be called regularly: it compares the clocks to notice that the browser slept. */
  watchClocks(): void {
    const now = { monotonicMs: this.#browser.monotonicMs(), wallMs: this.#browser.wallMs() };
    const parted = clocksParted(this.#moment, now);
    this.#moment = now;
    if (parted) this.#dispatch({ type: 'clocks_parted' });
  }

  /** Handles the passing of time. Must be called at each second that is shown. */
  tick(): void {
    const { place } = this.#state;
    if (place.status === 'admitted' && !isLetIn(place, this.nowMs())) this.#dispatch({ type: 'pass_ended' });
    else this.#sync();
  }

  #signIn(signIn: SignIn): void {
    this.#dispatch({ type: 'signed_in', signIn, purchase: this.#keptPurchase(signIn.userId) });
  }

  #dispatch(event: PageEvent): void {
    const before = this.#state;
    this.#state = reduce(before, event);
    if (this.#state === before) return;
    if (this.#state.purchase !== before.purchase) this.#keep(this.#state.purchase);
    this.#sync();
    for (const listener of this.#listeners) listener();
  }

  // Data that survives a reload.

  #name(what: string, userId: string): string {
    return `seckill:${what}:${this.#state.saleId}:${userId}`;
  }

  #keptPurchase(userId: string): Purchase {
    const { storage, newKey } = this.#browser;
    const kept = storage.read(this.#name('purchase', userId));
    if (kept !== null) return restored(JSON.parse(kept) as KeptPurchase); // only this page writes it
    const purchase = newPurchase(newKey());
    storage.write(this.#name('purchase', userId), JSON.stringify(keptOf(purchase)));
    return purchase;
  }

  /** Saves the purchase before anything is sent. */
  #keep(purchase: Purchase): void {
    const { signIn } = this.#state;
    if (signIn === null) return;
    this.#browser.storage.write(this.#name('purchase', signIn.userId), JSON.stringify(keptOf(purchase)));
  }

  /** Returns the key of the charge with this coupon, which stays the same until the charge is declined. */
  #payKey(): string {
    const { storage, newKey } = this.#browser;
    const kept = storage.read(this.#chargeName());
    if (kept !== null) return kept;
    const key = newKey();
    storage.write(this.#chargeName(), key);
    return key;
  }

  #chargeName(): string {
    const { order, coupon } = this.#state;
    return `seckill:charge:${order?.orderId ?? ''}${coupon === null ? '' : `:${coupon.code}`}`;
  }

  // Activities that are running.

  #sync(): void {
    const wanted = activitiesOf(this.#state, this.nowMs());
    for (const activity of ACTIVITIES) {
      const name = wanted[activity];
      const running = this.#running.get(activity);
      if (running?.name === name) continue;
      running?.stop.abort();
      this.#running.delete(activity);
      if (name === undefined) continue;
      const stop = new AbortController();
      this.#running.set(activity, { name, stop });
      void this.#run(activity, stop.signal);
    }
  }

  #run(activity: Activity, signal: AbortSignal): Promise<void> {
    switch (activity) {
      case 'look':
        return this.#look(signal);
      case 'ask':
        return this.#ask(signal);
      case 'check':
        return this.#check(signal);
      case 'follow':
        return this.#follow(signal);
      case 'order':
        return this.#readOrder(signal);
      case 'orders':
        return this.#readOrders(signal);
      case 'coupons':
        return this.#readCoupons(signal);
      case 'news':
        return this.#readNews(signal);
      case 'move':
        return this.#move(signal);
      case 'queue':
        return this.#queue(signal);
      case 'token':
        return this.#fetchToken(signal);
    }
  }

  /** Reads the sale repeatedly, as often as the api says. */
  async #look(signal: AbortSignal): Promise<void> {
    const { sleep } = this.#browser;
    for (let failed = 0, fresh = 0; !signal.aborted;) {
      const isFresh = fresh < FRESH_LOOKS_MAX && this.#needsTime();
      if (isFresh) fresh++;
      const path = this.#path(isFresh ? '?fresh=1' : '');
      // everyone gets the same answer, so no token is sent
      const answer = await ask({ path }, ANSWER_MAX_MS, signal, this.#browser);
      if (signal.aborted) return;
      this.#dispatch({ type: 'sale_read', answer });
      const isRead = answer.ok && this.#state.sale !== null; // a degraded API may say nothing
      failed = isRead ? 0 : failed + 1;
      const isSoon = isRead && fresh < FRESH_LOOKS_MAX && this.#needsTime();
      await sleep(isSoon ? FRESH_LOOK_MS : this.#lookAgainIn(answer, failed), signal);
    }
  }

  /** True if the opening is near and the server's time is not yet known well enough. */
  #needsTime(): boolean {
    const { sale, clock } = this.#state;
    if (sale === null || clock === null) return false;
    const untilOpenMs = sale.opensAtMs - this.nowMs();
    return untilOpenMs > 0 && untilOpenMs < PREPARE_MS && clockErrorMs(clock) > CLOCK_ERROR_MS;
  }

  #lookAgainIn(answer: Answer, failed: number): number {
    const { sale } = this.#state;
    const random = this.#browser.random();
    if (sale === null || failed > 0) return backOffMs(failed, answer.ok ? null : answer.retryAfterMs, random);
    return sale.pollAfterMs * (1 + random / 2);
  }

  /** Sends the purchase until it gets a usable answer. */
  async #ask(signal: AbortSignal): Promise<void> {
    const { monotonicMs, sleep, random } = this.#browser;
    const untilMs = monotonicMs() + ASK_MAX_MS;
    while (!signal.aborted) {
      const { purchase, place, purchaseToken, signIn } = this.#state;
      const answer = await this.#request(
        {
          method: 'POST',
          path: this.#path('/purchases'),
          headers: {
            'Idempotency-Key': purchase.key,
            ...(signIn === null ? {} : { 'Seckill-Lane': String(laneOf(signIn.userId)) }),
            ...(place.status === 'admitted' ? { 'Seckill-Queue-Pass': place.pass } : {}),
            ...(purchaseToken.status === 'fetched' && purchaseToken.token !== null
              ? { 'Seckill-Purchase-Token': purchaseToken.token }
              : {}),
          },
          body: { quantity: purchase.quantity },
        },
        signal,
      );
      if (signal.aborted) return; // sent again with the same key when the activity resumes
      this.#dispatch({ type: 'answered', answer, nowMs: this.nowMs() });
      if (this.#state.purchase.step !== 'asking') return;
      if (monotonicMs() > untilMs) return this.giveUp();
      const retryAfterMs = answer.ok ? null : answer.retryAfterMs;
      await sleep(backOffMs(this.#state.purchase.tries, retryAfterMs, random()), signal, true);
    }
  }

  /** Looks up a purchase that may have been accepted. */
  async #check(signal: AbortSignal): Promise<void> {
    const { wallMs, sleep, random } = this.#browser;
    const { problem, key } = this.#state.purchase;
    if (problem !== null && problem.code !== 'request_conflict') await sleep(LOST_MS, signal, true);
    for (let tries = 1; !signal.aborted; tries++) {
      const answer = await this.#request({ path: this.#path(`/purchases/${key}`) }, signal);
      if (signal.aborted) return;
      this.#dispatch({ type: 'checked', answer, wallMs: wallMs() });
      if (this.#state.purchase.step !== 'checking') return;
      await sleep(backOffMs(tries, answer.ok ? null : answer.retryAfterMs, random()), signal, true);
    }
  }

  /** Listens for each step of the purchase. */
  async #follow(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    let listening = LISTENING;
    const heard: Heard = { lastEventId: null, retryMs: null };
    while (!signal.aborted) {
      const { channel } = listening;
      const listened = await (channel === 'stream' ? this.#stream(heard, signal) : this.#poll(channel, signal));
      if (signal.aborted) return;
      listening = afterListening(listening, listened);
      const isPending = this.#state.purchase.step === 'held';
      const [fromMs, toMs] = listenAgainIn(listening, heard.retryMs, isPending);
      await sleep(fromMs + random() * (toMs - fromMs), signal);
    }
  }

  async #stream(heard: Heard, signal: AbortSignal): Promise<Listened> {
    const connection = new AbortController();
    const cut = (): void => connection.abort();
    signal.addEventListener('abort', cut);
    let isSilent = false;
    const silent = (): void => {
      isSilent = true;
      cut();
    };
    let timer = setTimeout(silent, FIRST_BYTES_MS);
    const beganMs = this.#browser.monotonicMs();
    let [events, bytes] = [0, 0];
    try {
      const response = await send(this.#streamRequest(heard), this.#browser.fetch, connection.signal);
      if (response.status === 204) return 'worked'; // the end of the purchase was already seen
      if (!response.ok || response.body === null || !/event-stream/.test(response.headers.get('content-type') ?? '')) {
        if ((await failureIn(response)).code === 'unauthorized') this.#dispatch({ type: 'signed_out' });
        return 'refused';
      }
      const pieces = response.body.getReader();
      const decoder = new TextDecoder();
      const reader = new EventStreamReader();
      for (let piece = await pieces.read(); !piece.done; piece = await pieces.read()) {
        clearTimeout(timer);
        timer = setTimeout(silent, SILENT_MS);
        bytes += piece.value.length;
        for (const { id, event, data } of reader.push(decoder.decode(piece.value, { stream: true }))) {
          events++;
          heard.lastEventId = id ?? heard.lastEventId;
          this.#dispatch({ type: 'step', event, body: JSON.parse(data) as Record<string, unknown> });
        }
        heard.retryMs = reader.retryMs ?? heard.retryMs;
      }
    } catch {
      if (isSilent) return 'silent';
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', cut);
      cut();
    }
    // A stream that resumes where the last one ended may have nothing to report until it ends.
    const wasOpen = bytes > 0 && this.#browser.monotonicMs() - beganMs >= OPEN_MS;
    return events > 0 || wasOpen ? 'worked' : 'cut';
  }

  #streamRequest({ lastEventId }: Heard): Request {
    return this.#withToken({
      path: this.#path(`/purchases/${this.#state.purchase.key}/events`),
      headers: lastEventId === null ? {} : { 'Last-Event-ID': lastEventId },
    });
  }

  async #poll(channel: 'long_poll' | 'poll', signal: AbortSignal): Promise<Listened> {
    const { monotonicMs } = this.#browser;
    const { key, step } = this.#state.purchase;
    const waitSeconds = channel === 'long_poll' && step === 'held' ? LONG_POLL_SECONDS : 0;
    const beganMs = monotonicMs();
    const path = this.#path(`/purchases/${key}${waitSeconds > 0 ? `?wait=${waitSeconds}` : ''}`);
    const answer = await this.#request({ path }, signal, waitSeconds * 1000 + ANSWER_MAX_MS);
    if (signal.aborted) return 'worked';
    if (!answer.ok) {
      this.#dispatch({ type: 'checked', answer, wallMs: this.#browser.wallMs() });
      return 'refused';
    }
    this.#dispatch({ type: 'step', event: '', body: answer.body ?? {} });
    const wasHeld = waitSeconds === 0 || this.#state.purchase.step !== 'held' || monotonicMs() - beganMs > 1000;
    return wasHeld ? 'worked' : 'cut';
  }

  /** Reads the order, and reads it again around its deadline. */
  async #readOrder(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    const path = `/v1/orders/${this.#state.purchase.orderId ?? ''}`;
    for (let tries = 1; !signal.aborted;) {
      const answer = await this.#request({ path }, signal);
      if (signal.aborted) return;
      this.#dispatch({ type: 'order_read', answer });
      const { order } = this.#state;
      if (order === null || !answer.ok) {
        await sleep(backOffMs(tries++, answer.ok ? null : answer.retryAfterMs, random()), signal);
        continue;
      }
      if (!isOpen(order.state)) return;
      tries = 1;
      const leftMs = (order.expiresAtMs ?? Infinity) - this.nowMs();
      // A stream reports every change. This read is for clients without a stream, and for the deadline.
      await sleep(
        leftMs > 0 ? Math.min(60_000, leftMs + 500) * (0.9 + 0.1 * random()) + 500 : 1500 + 1500 * random(),
        signal,
      );
    }
  }

  /** Reads the coupons of the buyer once. Without an answer, the buyer pays without a coupon. */
  async #readCoupons(signal: AbortSignal): Promise<void> {
    const answer = await this.#request({ path: '/v1/me/coupons?limit=50' }, signal);
    if (!signal.aborted) this.#dispatch({ type: 'coupons_read', answer });
  }

  async #move(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    while (!signal.aborted && this.#state.move !== null && this.#state.order !== null) {
      const { move, key } = this.#state.move;
      const path = `/v1/orders/${this.#state.order.orderId}/${move}`;
      const headers: Record<string, string> = move === 'pay' ? { 'Idempotency-Key': key } : {};
      const { coupon } = this.#state;
      const body = move === 'pay' && coupon !== null ? { body: { coupon: coupon.code } } : {};
      const answer = await this.#request({ method: 'POST', path, headers, ...body }, signal, MOVE_MAX_MS);
      if (signal.aborted) return;
      if (!answer.ok && answer.code === 'payment_declined') this.#browser.storage.remove(this.#chargeName());
      this.#dispatch({ type: 'moved', answer });
      const { move: left } = this.#state;
      if (answer.ok || left === null) return;
      await sleep(backOffMs(left.tries, answer.retryAfterMs, random()), signal);
    }
  }

  /** Waits in the waiting room until the buyer is admitted. */
  async #queue(signal: AbortSignal): Promise<void> {
    const { sleep, random, storage } = this.#browser;
    const name = this.#name('ticket', this.#state.signIn?.userId ?? '');
    for (let failed = 0; !signal.aborted;) {
      const ticket = storage.read(name);
      const request = ticket === null ? { method: 'POST' as const, path: '/queue' } : { path: `/queue/${ticket}` };
      const answer = await this.#request({ ...request, path: this.#path(request.path) }, signal);
      if (signal.aborted) return;
      const next = answer.ok ? answer.body?.ticket : undefined;
      if (typeof next === 'string') storage.write(name, next);
      else if (answer.ok || answer.code === 'ticket_not_found') storage.remove(name);
      this.#dispatch({ type: 'queue', answer });
      if (signal.aborted) return; // admitted
      failed = answer.ok ? 0 : failed + 1;
      const { pollAfterMs } = (answer.ok ? answer.body : null) ?? {};
      const pauseMs = typeof pollAfterMs === 'number' ? pollAfterMs : 2000;
      const isLost = !answer.ok && answer.code === 'ticket_not_found';
      const againMs =
        answer.ok || isLost
          ? pauseMs * (0.9 + 0.2 * random())
          : backOffMs(failed, answer.retryAfterMs ?? 2000, random());
      await sleep(isLost && failed === 1 ? 0 : againMs, signal, true); // a buyer who stops asking loses the place
    }
  }

  async #fetchToken(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    for (let failed = 1; !signal.aborted; failed++) {
      const answer = await this.#request({ method: 'POST', path: this.#path('/purchase-token') }, signal);
      if (signal.aborted) return;
      this.#dispatch({ type: 'purchase_token', answer });
      if (answer.ok || answer.code === 'token_limit_reached') return;
      // The server does not say when tokens become available, so the page waits half of the time left until the
      // opening, then half of the rest, and so on.
      const untilOpenMs = (this.#state.sale?.opensAtMs ?? 0) - this.nowMs();
      const halfMs = answer.code === 'not_open' ? Math.max(0, untilOpenMs / 2) : 0;
      await sleep(Math.max(halfMs, backOffMs(failed, answer.retryAfterMs, random())), signal, true);
    }
  }

  /** Looks for an order of this sale among the orders of the buyer. */
  async #readOrders(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    for (let tries = 1, reads = 0; !signal.aborted; tries++) {
      const answer = await this.#request({ path: '/v1/me/orders?limit=50' }, signal);
      if (signal.aborted) return;
      this.#dispatch({ type: 'orders_read', answer });
      if (answer.ok && ++reads >= ORDERS_READ_MAX) return;
      if (!answer.ok && answer.code === 'denied') return;
      await sleep(backOffMs(tries, answer.ok ? null : answer.retryAfterMs, random()), signal);
    }
  }

  async #readNews(signal: AbortSignal): Promise<void> {
    const { sleep, random } = this.#browser;
    await sleep(random() * NEWS_SPREAD_MS, signal); // a sale closes for all open pages at once
    for (let tries = 1; tries <= NEWS_TRIES_MAX && !signal.aborted; tries++) {
      const answer = await this.#request({ path: `/v1/me/notifications?unread=true&limit=${NEWS_SHOWN}` }, signal);
      if (signal.aborted) return;
      this.#dispatch({ type: 'news_read', answer });
      if (answer.ok) return;
      await sleep(backOffMs(tries, answer.retryAfterMs, random()), signal);
    }
  }

  #path(rest: string): string {
    return `/v1/sales/${this.#state.saleId}${rest}`;
  }

  /** Adds the token, and the cell of the sale, for paths that name no sale. Only a proxy in front of cells reads it. */
  #withToken(request: Request): Request {
    const headers = { ...request.headers, 'Seckill-Cell': String(Number(this.#state.saleId.slice(-2))) };
    return { ...request, headers, token: this.#state.signIn?.token ?? null };
  }

  #request(request: Request, signal: AbortSignal, timeoutMs = ANSWER_MAX_MS): Promise<Answer> {
    return ask(this.#withToken(request), timeoutMs, signal, this.#browser);
  }
}

/**
 * Returns the activities that should run now, each with a name. An activity keeps running while its name stays the
 * same.
 */
function activitiesOf(state: PageState, nowMs: number): Readonly<Partial<Record<Activity, string>>> {
  const { isOnline, isVisible, purchase, order, move, sale, signIn, signInEnded, place, purchaseToken } = state;
  if (!isOnline) return {};
  const { step, key, orderId } = purchase;
  const isUndecided = order === null || isOpen(order.state);
  const isBusy = !signInEnded && (step === 'asking' || step === 'checking' || step === 'held');
  // In the background it keeps reading until the opening, to learn when to join the waiting room or fetch a token.
  const mayPrepare = signIn !== null && sale !== null && isBeforeOpening(sale);
  const isIdle = isBusy || !(isVisible || mayPrepare);
  const look = isIdle && sale !== null ? {} : { look: String(state.looks) };
  if (signIn === null || signInEnded) return look;
  const by = (name: string): string => `${name} ${signIn.token}`; // restarts with another token
  const isPreparing =
    step === 'ready' &&
    sale !== null &&
    sale.state !== 'closed' &&
    sale.state !== 'announced' && // no waiting room and no tokens yet
    sale.opensAtMs - nowMs < PREPARE_MS &&
    nowMs < sale.closesAtMs;
  const needsPlace = isPreparing && asksFor(state, 'queue_pass') && !isLetIn(place, nowMs);
  const needsToken = isPreparing && asksFor(state, 'purchase_token') && !isGood(purchaseToken, nowMs);
  return {
    ...look,
    ...(step === 'asking' ? { ask: by(key) } : {}),
    ...(step === 'checking' ? { check: by(key) } : {}),
    ...(step === 'held' || (step === 'ordered' && isUndecided) ? { follow: by(key) } : {}),
    // Streams end at the payment. For news of a refund, an ended order is read whenever its buyer returns to the tab.
    ...(step === 'ordered' && orderId !== null && (isUndecided || isVisible)
      ? { order: by(`${orderId} ${isUndecided}`) }
      : {}),
    ...(isLookedForAmongOrders(purchase) ? { orders: by(key) } : {}),
    ...(order !== null && isOpen(order.state) && order.amountCents > 0 ? { coupons: by(order.orderId) } : {}),
    ...(isVisible && sale !== null && nowMs >= sale.closesAtMs ? { news: by('news') } : {}),
    ...(move === null ? {} : { move: by(`${move.move} ${move.key}`) }),
    ...(needsPlace ? { queue: by('queue') } : {}),
    ...(needsToken ? { token: by('token') } : {}),
  };
}

/** True if the result of a purchase is unknown, or another purchase exists. The buyer's orders then give the answer. */
const isLookedForAmongOrders = ({ step, problem, clickedAtMs }: Purchase): boolean =>
  step === 'ready' && problem !== null && (problem.code === 'limit_reached' || clickedAtMs !== null);

const isGood = (token: PageState['purchaseToken'], nowMs: number): boolean =>
  token.status === 'fetched' && nowMs < (token.endsAtMs ?? Infinity);

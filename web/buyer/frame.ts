import type { PageState } from './state.js';

/** Messages between this page in a frame and the page of the shop around it: docs/buying.md. */
const READY = 'seckill:ready';
const TOKEN = 'seckill:token';
const SIGN_IN_ENDED = 'seckill:sign-in-ended';
const ORDER = 'seckill:order';

/** Pause before the page asks the shop for another token, if the new token was refused too. It doubles each time. */
const ASK_AGAIN_MS = 1000;
const ASK_AGAIN_MAX_MS = 60_000;
/** After a sign-in that lasted this long, the count of requests for a token starts at 1 again. */
const LASTED_MS = 120_000;

export interface Frame {
  /** Tells the shop about changes. Must be called at each change and every second. */
  tell(state: PageState): void;
}

/** The methods of a window that are used here. */
export interface FrameWindow {
  readonly parent: FrameWindow;
  postMessage(message: unknown, targetOrigin: string): void;
  addEventListener(
    type: 'message',
    listener: (message: { readonly source: unknown; readonly origin: string; readonly data: unknown }) => void,
  ): void;
}

/**
 * Takes the token from the page that embeds this page. `frame-ancestors` of our content security policy names the
 * allowed pages, and the browser enforces it: no other page could embed this page.
 * @param time `random` from 0 up to 1
 */
export function joinFrame(
  self: FrameWindow,
  onToken: (token: string) => void,
  time: { readonly monotonicMs: () => number; readonly random: () => number },
): Frame {
  const shop = self.parent;
  if (shop === self) return { tell: () => undefined };
  let origin: string | null = null;
  let hasAsked = false;
  let [asks, askFromMs] = [0, 0];
  let told = '';
  self.addEventListener('message', ({ source, data, origin: from }) => {
    if (source !== shop || typeof data !== 'object' || data === null) return;
    const { type, token } = data as { readonly type?: unknown; readonly token?: unknown };
    if (type !== TOKEN || typeof token !== 'string') return;
    origin = from;
    hasAsked = false;
    onToken(token);
  });
  shop.postMessage({ type: READY }, '*'); // contains nothing that only the shop may know
  const ask = (nowMs: number): void => {
    if (nowMs < askFromMs) return;
    shop.postMessage({ type: SIGN_IN_ENDED }, '*');
    hasAsked = true;
    asks = nowMs - askFromMs > LASTED_MS ? 1 : asks + 1;
    askFromMs = nowMs + Math.min(ASK_AGAIN_MAX_MS, ASK_AGAIN_MS * 2 ** (asks - 1)) * (0.5 + time.random() / 2);
  };
  return {
    tell({ signInEnded, saleId, order }) {
      if (!signInEnded) hasAsked = false;
      else if (!hasAsked) ask(time.monotonicMs());
      if (order === null || origin === null) return;
      const { orderId, state } = order;
      if (told === `${orderId} ${state}`) return;
      told = `${orderId} ${state}`;
      shop.postMessage({ type: ORDER, saleId, orderId, state }, origin);
    },
  };
}

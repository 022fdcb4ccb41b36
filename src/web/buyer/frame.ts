import type { PageState } from './state.js';

/** Messages between this page in a frame and the page of the shop around it: docs/buyer-page.md. */
const READY = 'seckill:ready';
const TOKEN = 'seckill:token';
const SIGN_IN_ENDED = 'seckill:sign-in-ended';
const ORDER = 'seckill:order';

export interface Frame {
  /** Tells the shop what it may want to know. */
  tell(state: PageState): void;
}

/**
 * Takes the token from the page that has this one in a frame. Who that may be is said by `frame-ancestors` of our content security
 * policy, which the browser enforces: nobody else could ask.
 */
export function joinFrame(self: Window, onToken: (token: string) => void): Frame {
  const shop = self.parent;
  if (shop === self) return { tell: () => undefined };
  let origin: string | null = null;
  let hasEnded = false;
  let told = '';
  self.addEventListener('message', ({ source, data, origin: from }: MessageEvent<unknown>) => {
    if (source !== shop || typeof data !== 'object' || data === null) return;
    const { type, token } = data as { readonly type?: unknown; readonly token?: unknown };
    if (type !== TOKEN || typeof token !== 'string') return;
    origin = from;
    hasEnded = false;
    onToken(token);
  });
  shop.postMessage({ type: READY }, '*'); // nothing that only the shop may know
  return {
    tell({ signInEnded, saleId, order }) {
      if (signInEnded && !hasEnded) shop.postMessage({ type: SIGN_IN_ENDED }, '*');
      hasEnded = signInEnded;
      if (order === null || origin === null) return;
      const { orderId, state } = order;
      if (told === `${orderId} ${state}`) return;
      told = `${orderId} ${state}`;
      shop.postMessage({ type: ORDER, saleId, orderId, state }, origin);
    },
  };
}

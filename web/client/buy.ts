import { after } from '../../src/core/after.js';
import { CannotFollow, follow } from './follow.js';
import { isUnsure, sleep, untilAnswered, type Patience } from './send.js';
import type { BuyOptions, ClientOptions, Purchase, PurchaseResult, Refusal } from './types.js';

/** Creates a name for a purchase or a charge: 128 random bits. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');

/** How long a lost attempt may take to arrive; until then a look-up may miss it. */
const LOST_MS = 2_000;

/** @param sale the address of the sale */
export async function buy(
  sale: string,
  { key = newKey(), quantity = 1, metadata, queuePass, purchaseToken }: BuyOptions,
  patience: Patience,
  options: ClientOptions,
): Promise<PurchaseResult> {
  const path = `${sale}/purchases/${encodeURIComponent(key)}`;
  const tries = { areUnsure: false };
  const asked = await untilAnswered<Purchase>(
    {
      method: 'POST',
      path: `${sale}/purchases`,
      headers: {
        'Idempotency-Key': key,
        'Seckill-Queue-Pass': queuePass,
        'Seckill-Purchase-Token': purchaseToken,
      },
      body: metadata === undefined ? { quantity } : { quantity, metadata },
    },
    { ...patience, onUnsure: () => void (tries.areUnsure = true) },
    options,
    saysStatus,
  );
  if (asked.ok) return endOf(asked.body, key) ?? untilOrdered(path, key, patience, options);
  if (!tries.areUnsure) return refused(asked, key);

  // A lost attempt may still be on its way, through another server. The purchase is looked up once more.
  await sleep(LOST_MS, patience.signal);
  const found = await untilAnswered<Purchase>({ path }, patience, options, saysStatus);
  if (found.ok) return endOf(found.body, key) ?? untilOrdered(path, key, patience, options);
  const isNothing = found.code === 'purchase_not_found' && !isUnsure(asked);
  return isNothing ? refused(asked, key) : { outcome: 'unknown', key };
}

/**
 * True if the body has a definite status. A degraded API may answer `unknown`: then it is unknown whether units are
 * held.
 */
const saysStatus = (body: Partial<Purchase> | null): boolean =>
  body?.status === 'pending' || body?.status === 'ordered' || body?.status === 'failed';

/** Returns null if the purchase has not ended. */
function endOf({ status, orderId, orderState, reason }: Purchase, key: string): PurchaseResult | null {
  if (status === 'ordered' && orderId !== undefined)
    return { outcome: 'ordered', key, orderId, orderState: orderState ?? 'pending_payment' };
  return status === 'failed' ? { outcome: 'failed', key, reason: reason ?? 'unknown' } : null;
}

/** Waits for the end of a purchase whose units are held. Such a purchase always ends. */
async function untilOrdered(
  path: string,
  key: string,
  patience: Patience,
  options: ClientOptions,
): Promise<PurchaseResult> {
  const timer = new AbortController();
  const stop = after(Math.max(0, patience.endMs - performance.now()), () => timer.abort());
  const abort = (): void => timer.abort();
  patience.signal?.addEventListener('abort', abort);
  try {
    for await (const { purchase } of follow(path, { ...patience, signal: timer.signal }, options)) {
      const end = endOf(purchase, key);
      if (end !== null) return end;
    }
    return { outcome: 'pending', key };
  } catch (error) {
    patience.signal?.throwIfAborted();
    if (error instanceof CannotFollow || timer.signal.aborted) return { outcome: 'pending', key };
    throw error;
  } finally {
    stop();
    patience.signal?.removeEventListener('abort', abort);
  }
}

const refused = ({ code, detail, retryAfterMs, problem }: Refusal, key: string): PurchaseResult => ({
  outcome: 'refused',
  key,
  code,
  detail,
  retryAfterMs,
  problem,
});

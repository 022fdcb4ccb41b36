import type { Proof, SalePage } from '../../src/contract/sales.js';
import type { Success } from '../shared/ask.js';

const STATES: readonly SalePage['state'][] = ['announced', 'not_open', 'open', 'paused', 'closed', 'loading'];
const STOCKS: readonly SalePage['stock'][] = ['plenty', 'few', 'none', 'unknown'];

export type { Proof };

/** The last known state of a sale. Times are Unix ms of the server. */
export interface SaleView {
  readonly saleId: string;
  readonly sku: string;
  readonly title: string;
  readonly priceCents: number;
  readonly currency: string;
  readonly limitPerBuyer: number;
  /** Time to pay, such as 10m. Empty: the shop's default, which an order shows. */
  readonly paymentWindow: string;
  readonly state: SalePage['state'];
  readonly stock: SalePage['stock'];
  readonly asksFor: readonly string[];
  readonly opensAtMs: number;
  readonly closesAtMs: number;
  /** Server time of this state. */
  readonly serverMs: number;
  /** Wait before the next read. */
  readonly pollAfterMs: number;
}

/** Used if the api does not say how long to wait. */
const POLL_AFTER_MS = 10_000;

/**
 * Reads the body of a sale. A degraded API returns fewer fields, and missing fields stay as they were.
 * @returns null if the body contains nothing to show
 */
export function readSale(body: Success['body'], before: SaleView | null): SaleView | null {
  if (body === null) return before; // 204: no data at the moment
  const text = (name: string, otherwise: string): string => {
    const value = body[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const whole = (name: string, otherwise: number): number => {
    const value = body[name];
    return typeof value === 'number' ? value : otherwise;
  };
  const time = (name: string, otherwise: number): number => {
    const ms = Date.parse(text(name, ''));
    return Number.isNaN(ms) ? otherwise : ms;
  };
  const state = STATES.find((known) => known === body.state) ?? before?.state;
  const sale: Omit<SaleView, 'state'> = {
    saleId: text('saleId', before?.saleId ?? ''),
    sku: text('sku', before?.sku ?? ''),
    title: text('title', before?.title ?? ''),
    priceCents: whole('priceCents', before?.priceCents ?? 0),
    currency: text('currency', before?.currency ?? ''),
    limitPerBuyer: whole('limitPerBuyer', before?.limitPerBuyer ?? 1),
    paymentWindow: text('paymentWindow', before?.paymentWindow ?? ''),
    stock: STOCKS.find((known) => known === body.stock) ?? before?.stock ?? 'unknown',
    asksFor: Array.isArray(body.asksFor) ? body.asksFor.map(String) : (before?.asksFor ?? []),
    opensAtMs: time('opensAt', before?.opensAtMs ?? 0),
    closesAtMs: time('closesAt', before?.closesAtMs ?? 0),
    serverMs: time('serverTime', before?.serverMs ?? 0),
    pollAfterMs: whole('pollAfterMs', before?.pollAfterMs ?? POLL_AFTER_MS),
  };
  return state === undefined || sale.title === '' ? before : { ...sale, state };
}

/**
 * What a sale offers at a moment.
 * - `opening`: its time has come, but the shop has not opened it yet
 * - `loading`: its state is temporarily unknown
 */
export type Offer = 'not_open' | 'opening' | 'open' | 'sold_out' | 'paused' | 'loading' | 'closed';

/**
 * @param serverNowMs on the server's clock; a sale that was read before its opening is open once its time has come,
 * without another request
 */
export function offerOf(sale: SaleView, serverNowMs: number): Offer {
  if (sale.state === 'closed' || serverNowMs >= sale.closesAtMs) return 'closed';
  if (sale.state === 'paused' || sale.state === 'loading') return sale.state;
  if (isBeforeOpening(sale)) {
    if (serverNowMs < sale.opensAtMs) return 'not_open';
    if (sale.serverMs >= sale.opensAtMs) return 'opening';
  }
  return sale.stock === 'none' ? 'sold_out' : 'open';
}

/** An announced sale is not loaded yet. To a buyer who waits for its opening this makes no difference. */
export const isBeforeOpening = ({ state }: SaleView): boolean => state === 'announced' || state === 'not_open';

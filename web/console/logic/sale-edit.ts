import type { Sale } from '../api/types.js';
import { inSmallestUnit } from '../../../src/core/currency.js';
import { readDuration } from '../../../src/core/duration.js';
import { localTimeField } from './format.js';

/** The texts in the fields of a sale. */
export interface TypedSale {
  readonly title: string;
  /** Units. */
  readonly stock: string;
  /** In the time zone of the browser. */
  readonly closesAt: string;
  /** Such as 10m. Empty: the default. */
  readonly paymentWindow: string;
  /** In the main unit: 19.99. */
  readonly price: string;
}

/** The change as sent to the API. Absent fields stay unchanged. */
export interface SaleChange {
  readonly title?: string;
  readonly stock?: number;
  readonly closesAt?: string;
  readonly paymentWindow?: string;
  readonly priceCents?: number;
}

/** Returns the change of a sale, and the fields that cannot be read. An empty field is neither a figure nor a time. */
export function saleEdit(
  sale: Sale,
  typed: TypedSale,
): { readonly change: SaleChange; readonly wrong: readonly (keyof TypedSale)[] } {
  const isDraft = sale.state === 'draft';
  const stock = figureOf(typed.stock);
  const priceCents = inSmallestUnit(figureOf(typed.price), sale.currency);
  const isOtherTime = typed.closesAt !== localTimeField(Date.parse(sale.closesAt)); // the field has no seconds
  const closesAtMs = Date.parse(typed.closesAt);
  const isOtherWindow = typed.paymentWindow.trim() !== (sale.paymentWindow ?? '');
  const readable: Readonly<Record<keyof TypedSale, boolean>> = {
    title: true,
    stock: Number.isInteger(stock) && stock >= 1,
    closesAt: !isOtherTime || !Number.isNaN(closesAtMs),
    paymentWindow: !isOtherWindow || readDuration(typed.paymentWindow.trim()) !== null,
    price: !isDraft || (Number.isInteger(priceCents) && priceCents >= 0),
  };
  return {
    change: {
      ...(typed.title !== sale.title && { title: typed.title }),
      ...(readable.stock && stock !== sale.stock && { stock }),
      ...(readable.closesAt && isOtherTime && { closesAt: new Date(closesAtMs).toISOString() }),
      ...(readable.paymentWindow && isOtherWindow && { paymentWindow: typed.paymentWindow.trim() }),
      ...(isDraft && readable.price && priceCents !== sale.priceCents && { priceCents }),
    },
    wrong: (Object.keys(readable) as (keyof TypedSale)[]).filter((name) => !readable[name]),
  };
}

/** Reads a typed figure. An empty text is no figure. */
export const figureOf = (text: string): number => (text.trim() === '' ? Number.NaN : Number(text));

import { amountText } from '../../core/amount-text.js';
import { durationText, durationTextOrNull } from '../../core/duration.js';
import type { FieldError } from '../../core/field-errors.js';
import type { Sale } from '../../core/sale.js';
import { readTime } from '../../core/time.js';
import { saleBody } from './routes.js';
import { flagOf } from '../../process/options.js';
import { isoTime, print, inLine } from '../../process/print.js';

/** The format of `--coupon`. */
export const COUPON_HELP = "'10% 30d' or '500 30d min 2000' (value, days valid, least amount of the order)";

/** Prints the same fields and formats as the HTTP API. */
export const saleLine = (sale: Sale): string => JSON.stringify(saleBody(sale));

export function printSale(sale: Sale): void {
  const rows = {
    sale: sale.saleId,
    state: sale.state,
    sku: sale.sku,
    title: sale.title,
    price: amountText(sale.priceCents, sale.currency),
    sold: `${sale.sold} of ${sale.stock}`,
    'per buyer': `${sale.limitPerBuyer}`,
    'to pay': durationTextOrNull(sale.paymentWindowMs) ?? 'ORDER_PAYMENT_WINDOW_MS of the workers',
    ...(sale.coupon ? { coupon: sale.coupon } : {}),
    buckets: `${sale.buckets}`,
    opens: isoTime(sale.opensAtMs),
    closes: isoTime(sale.closesAtMs),
    ...(sale.retiredAtMs === null ? {} : { retired: isoTime(sale.retiredAtMs) }),
    'run by':
      sale.warmBeforeMs === null ? 'hand' : `the keeper, warmed ${durationText(sale.warmBeforeMs)} before it opens`,
  };
  for (const [name, value] of Object.entries(rows)) print(`${name.padEnd(10)} ${inLine(value)}`);
}

/** Returns a text with one line per wrong option. */
export function invalidSale(errors: readonly FieldError[]): string {
  const lines = errors.map(({ field, message }) => {
    const predicate = message.slice(field.length).replace(/(?<=than )\w+(?=\.$)/, flagOf); // `later than --opens-at.`
    return `  ${flagOf(field)}${predicate}`;
  });
  return `this sale is invalid:\n${lines.map(inLine).join('\n')}`;
}

/** Converts digits to a number. Returns any other text unchanged; `readNewSale` then refuses it and names the field. */
export const numberOf = (text: string | undefined): unknown => (/^-?\d+$/.test(text ?? '') ? Number(text) : text);

/** Converts a time to ISO 8601. Returns any other text unchanged; a later check then refuses it. */
export function timeOf(text: string): string {
  const atMs = readTime(text, Date.now());
  return atMs === null ? text : isoTime(atMs);
}

import { inSmallestUnit } from '../../../src/core/currency.js';
import { figureOf } from './sale-edit.js';

/**
 * Reads an amount in the main unit of a currency, such as 19.99. @returns null if it is not an amount, or exceeds what
 * is left
 */
export function typedAmount(text: string, currency: string, leftCents: number): number | null {
  const cents = inSmallestUnit(figureOf(text), currency);
  return Number.isInteger(cents) && cents >= 1 && cents <= leftCents ? cents : null;
}

import { amountText } from './amount-text.js';
import { assertNever } from './errors.js';
import type { RefundRefused } from './ports/order-refunds.js';

/** Explains why no refund was ordered, for HTTP and for the command line. */
export function whyNoRefund(answer: RefundRefused, currency: string): string {
  switch (answer.outcome) {
    case 'in_progress':
      return 'Another refund of this order is under way. Wait until it is done.';
    case 'refund_failed':
      return `The refund with this key failed: ${answer.refund?.lastError ?? 'no reason'}. Use another key to try again.`;
    case 'wrong_state':
      return `Cannot refund an order that is ${answer.state}.`;
    case 'too_much':
      return `Only ${amountText(answer.leftCents, currency)} of this order is left to refund.`;
    case 'sale_closed':
      return 'The sale is closed, so its units cannot be sold again. Refund without restock.';
    default:
      return assertNever(answer);
  }
}

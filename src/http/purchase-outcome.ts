import { assertNever } from '../core/errors.js';
import type { PurchaseOutcome, RequestEntry } from '../core/outcome.js';
import { orderedAnswer, pendingAnswer, refusalAnswer, settledAnswer } from './purchase-answers.js';
import type { Answer } from './respond.js';
import type { HttpServices } from './services.js';

interface Asked {
  readonly saleId: string;
  readonly userId: string;
  readonly requestId: string;
}

/**
 * What a buyer hears of his purchase. Only a replay of one that has ended must look at its row.
 * @throws OperationalError mysql, for such a replay
 */
export function outcomeAnswer(
  asked: Asked,
  said: PurchaseOutcome,
  getPurchase: HttpServices['getPurchase'],
): Answer | Promise<Answer> {
  if (said.outcome === 'accepted') return pendingAnswer(asked.saleId, asked.requestId);
  if (said.outcome === 'replayed') return replayAnswer(asked, said.entry, getPurchase);
  return refusalAnswer(said.outcome, asked.requestId);
}

function replayAnswer(
  asked: Asked,
  entry: RequestEntry,
  getPurchase: HttpServices['getPurchase'],
): Answer | Promise<Answer> {
  switch (entry.state) {
    case 'held':
      return pendingAnswer(asked.saleId, asked.requestId);
    case 'ordered':
      return orderedAnswer(asked.requestId, entry.orderId);
    case 'released':
      return endedAnswer(asked, getPurchase);
    default:
      return assertNever(entry);
  }
}

async function endedAnswer(asked: Asked, getPurchase: HttpServices['getPurchase']): Promise<Answer> {
  const { saleId, requestId } = asked;
  const status = await getPurchase.get({ ...asked, waitMs: 0, signal: NEVER });
  // The ledger knows an order that the book has lost: a person decides, so nothing final is said.
  if (status.status === 'not_found') return refusalAnswer('outcome_unknown', requestId);
  return status.status === 'pending' ? pendingAnswer(saleId, requestId) : settledAnswer(requestId, status);
}

/** A replay is answered at once: nothing waits that could be aborted. */
const NEVER = new AbortController().signal;

import { expect } from 'chai';
import type { OrderState } from '../../../../src/core/order.js';
import type { RequestEntry } from '../../../../src/core/outcome.js';
import { compareRequest } from '../../../../src/operate/reconcile/judge-requests.js';

describe('compare-request (I3, I5)', () => {
  const held: RequestEntry = { state: 'held', batchId: 'b', quantity: 1 };
  const ordered: RequestEntry = { state: 'ordered', orderId: '1', quantity: 1 };
  const released: RequestEntry = { state: 'released', orderId: '1', quantity: 1 };
  const ROWS: [RequestEntry | null, OrderState | null, string][] = [
    [null, null, 'match'],
    [held, null, 'leak'],
    [ordered, null, 'order_lost'],
    [released, null, 'order_lost'],
    [null, 'paid', 'unheld'],
    [held, 'pending_payment', 'not_marked'],
    [ordered, 'pending_payment', 'match'],
    [released, 'paid', 'unheld'],
    [null, 'failed', 'match'],
    [held, 'failed', 'unreleased'],
    [ordered, 'cancelled', 'unreleased'],
    [released, 'expired', 'match'],
  ];
  for (const [entry, state, word] of ROWS) {
    it(`judges ${entry?.state ?? 'nothing'} in Redis and ${state ?? 'no row'} in MySQL as ${word}`, () => {
      expect(compareRequest(entry, state === null ? undefined : { state })).to.equal(word);
    });
  }
});

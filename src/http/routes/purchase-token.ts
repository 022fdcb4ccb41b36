import { assertNever } from '../../core/errors.js';
import type { HttpServices } from '../services.js';
import { snapshotOf } from './snapshot-of.js';
import type { Router } from './router.js';
import { saleBuyerOf } from './sale-buyer.js';
import { isoTime } from './sales.js';

/** Where a buyer fetches the one token that his purchase has to show. Safe to repeat: it stays his. */
export function mountPurchaseToken(router: Router, services: HttpServices): void {
  const { tokens, snapshots } = services;
  router.mount('purchase_token', '/v1/sales/{saleId}/purchase-token', {
    post: async (exchange) => {
      const { req, res, replies } = exchange;
      const who = await saleBuyerOf(exchange, services);
      if (who === null) return;
      const sale = await snapshotOf(exchange, snapshots);
      if (sale === null) return;
      if (sale.state === 'closed') return replies.problem(req, res, 'closed');
      const answer = await tokens.issue(sale, who.userId);
      switch (answer.outcome) {
        case 'handed': {
          const { token, untilMs } = answer;
          return replies.json(req, res, 200, answer.outcome, { token, endsAt: isoTime(untilMs) });
        }
        case 'not_needed':
          return replies.json(req, res, 200, answer.outcome, { token: null, endsAt: null });
        case 'not_open':
          return replies.problem(req, res, 'not_open', { detail: 'Tokens of this sale are not handed out yet.' });
        case 'closed':
        case 'tokens_gone':
          return replies.problem(req, res, answer.outcome);
        default:
          return assertNever(answer);
      }
    },
  });
}

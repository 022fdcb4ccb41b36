import { assertNever } from '../../core/errors.js';
import type { Sale } from '../../core/sale.js';
import type { QueueAnswer } from '../../admission/queue/waiting-rooms.js';
import type { Principal } from '../auth.js';
import type { HttpServices } from '../services.js';
import { snapshotOf } from './snapshot-of.js';
import type { Exchange, Router } from './router.js';
import { saleBuyerOf } from './sale-buyer.js';
import { isoTime } from './sales.js';

/** The waiting room in front of a sale: a buyer joins, comes back with his ticket, and gets a pass. */
export function mountQueue(router: Router, services: HttpServices): void {
  const { rooms } = services;
  router.mount('queue', '/v1/sales/{saleId}/queue', {
    post: async (exchange) => {
      const asked = await askedIn(exchange, services);
      if (asked !== null) tell(exchange, 202, asked.sale, rooms.join(asked.sale, asked.who));
    },
  });
  router.mount('queue', '/v1/sales/{saleId}/queue/{ticket}', {
    get: async (exchange) => {
      const asked = await askedIn(exchange, services);
      if (asked === null) return;
      tell(exchange, 200, asked.sale, rooms.look(asked.sale, asked.who, exchange.param('ticket')));
    },
  });
}

interface Asked {
  readonly who: Principal;
  readonly sale: Sale;
}

/** Who waits for which sale; answers itself and returns null where there is nothing to wait for. */
async function askedIn(exchange: Exchange, services: HttpServices): Promise<Asked | null> {
  const { snapshots, clock, rooms } = services;
  const who = await saleBuyerOf(exchange, services);
  if (who === null) return null;
  const sale = await snapshotOf(exchange, snapshots);
  if (sale === null) return null;
  if (sale.state !== 'closed' && clock.nowMs() < sale.closesAtMs) return { who, sale };
  rooms.end(sale.saleId);
  exchange.replies.problem(exchange.req, exchange.res, 'closed');
  return null;
}

/** @param waitingStatus 202 for a place that was asked for, 200 for one that was looked at */
function tell({ req, res, replies }: Exchange, waitingStatus: 200 | 202, { saleId }: Sale, answer: QueueAnswer): void {
  switch (answer.outcome) {
    case 'waiting': {
      const { outcome: status, ticket, priority, position, estimateMs, pollMs: pollAfterMs } = answer;
      const location = `/v1/sales/${saleId}/queue/${ticket}`;
      const headers = ['Cache-Control', 'no-store', 'Location', location];
      const body = { status, ticket, priority, position, estimateMs, pollAfterMs };
      return replies.json(req, res, waitingStatus, status, body, headers);
    }
    case 'admitted': {
      const { outcome: status, pass, untilMs } = answer;
      return replies.json(req, res, 200, status, { status, pass, passEndsAt: isoTime(untilMs) });
    }
    case 'no_queue':
      return replies.json(req, res, 200, answer.outcome, { status: answer.outcome });
    case 'sold_out':
    case 'overloaded':
    case 'ticket_not_found':
      return replies.problem(req, res, answer.outcome);
    default:
      return assertNever(answer);
  }
}

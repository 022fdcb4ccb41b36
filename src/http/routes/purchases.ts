import { isId, isSaleId } from '../../core/ids.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import type { Lifecycle } from '../respond.js';
import type { HttpServices } from '../services.js';
import { answerRead } from './degraded-read.js';
import type { Exchange, Router } from './router.js';
import { saleBuyerOf } from './sale-buyer.js';

/** Longer waits are cut by proxies on the way, and hold a connection for no gain. */
const WAIT_SECONDS_MAX = 30;

/** GET of one purchase: where it stands, at once or as soon as it is more than `pending`. */
export function mountPurchases(router: Router, services: HttpServices, lifecycle: Lifecycle): void {
  router.mount('purchase_status', '/v1/sales/{saleId}/purchases/{requestId}', {
    get: async (exchange) => {
      const { req, res, replies, param } = exchange;
      const who = await saleBuyerOf(exchange, services);
      if (who === null) return;
      const saleId = param('saleId');
      const requestId = param('requestId');
      if (!isSaleId(saleId) || !isId(requestId)) {
        return replies.problem(req, res, 'bad_request', {
          detail: 'The address must hold a sale id and a request id.',
        });
      }
      const waitMs = waitOf(req.query.wait);
      if (waitMs === null) {
        const detail = `wait must be a whole number of seconds from 0 to ${WAIT_SECONDS_MAX}.`;
        return replies.problem(req, res, 'bad_request', { requestId, detail });
      }
      const poll = startPoll(exchange, lifecycle);
      try {
        const { userId } = who;
        const ids = { requestId, saleId };
        const query = { ...ids, userId, waitMs, signal: poll.signal };
        const source = async (): Promise<Body | null> => {
          const status = await services.getPurchase.get(query);
          return status.status === 'not_found' ? null : { ...ids, ...status };
        };
        const read = {
          ...{ endpoint: 'status' as const, key: `${userId}/${saleId}/${requestId}`, ids, requestId, source },
          ...{ who: () => userId, word: ({ status }: Body) => String(status) },
          missing: () => 'purchase_not_found' as const,
          keeps: ({ status }: Body) => status !== 'pending',
        };
        await answerRead(exchange, read, services);
      } finally {
        lifecycle.polls.delete(poll);
      }
    },
  });
}

/** A poll ends early when its client has gone, and when the server drains. */
export function startPoll({ res }: Exchange, lifecycle: Lifecycle): AbortController {
  const poll = new AbortController();
  res.once('close', () => poll.abort());
  lifecycle.polls.add(poll);
  if (lifecycle.draining || res.destroyed) poll.abort();
  return poll;
}

function waitOf(wait: unknown): number | null {
  if (wait === undefined) return 0;
  if (typeof wait !== 'string' || !/^[0-9]{1,2}$/.test(wait)) return null;
  return Number(wait) <= WAIT_SECONDS_MAX ? Number(wait) * 1000 : null;
}

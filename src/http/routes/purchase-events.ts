import { assertNever } from '../../core/errors.js';
import { isId, isSaleId } from '../../core/ids.js';
import { isStepWord, type PurchaseStep } from '../../purchase/follow-purchase.js';
import type { Following } from '../../purchase/follow-purchase.js';
import { EventStream } from '../event-stream.js';
import type { Lifecycle } from '../respond.js';
import type { HttpServices } from '../services.js';
import { startPoll } from './purchases.js';
import type { Exchange, Router } from './router.js';
import { saleBuyerOf } from './sale-buyer.js';

/** GET of the news of one purchase, as a stream of events that ends with its last one. */
export function mountPurchaseEvents(router: Router, services: HttpServices, lifecycle: Lifecycle): void {
  router.mount('purchase_events', '/v1/sales/{saleId}/purchases/{requestId}/events', {
    get: async (exchange) => {
      const { req, res, replies, param } = exchange;
      const who = await saleBuyerOf(exchange, services);
      if (who === null) return;
      const asked = { saleId: param('saleId'), requestId: param('requestId') };
      if (!isSaleId(asked.saleId) || !isId(asked.requestId)) {
        return replies.problem(req, res, 'bad_request', {
          detail: 'The address must hold a sale id and a request id.',
        });
      }
      // Old news are none, so a stream has no poorer form; where the purchase stands can be asked for.
      const { degrade } = services;
      const level = degrade.isOn ? degrade.rulingOf('status', who.userId)?.level : undefined;
      if (level !== undefined && level !== 'L0') {
        return replies.problem(req, res, 'degraded', { requestId: asked.requestId, detail: NO_STREAM });
      }
      const lastEventId = req.headers['last-event-id'];
      const seen = isStepWord(lastEventId) ? lastEventId : null;
      const poll = startPoll(exchange, lifecycle);
      try {
        const query = { ...asked, userId: who.userId, seen, signal: poll.signal };
        const answer = await services.followPurchase.open(query);
        switch (answer.outcome) {
          case 'following':
            return await tell(answer, exchange, poll, services);
          case 'ended': // an EventSource that hears 204 does not come again
            return replies.empty(req, res, 204, 'ended');
          case 'not_found':
            return replies.problem(req, res, 'purchase_not_found', { requestId: asked.requestId });
          case 'overloaded':
            return replies.problem(req, res, 'overloaded', { requestId: asked.requestId, detail: TOO_MANY });
          default:
            assertNever(answer);
        }
      } finally {
        lifecycle.polls.delete(poll);
      }
    },
  });
}

const NO_STREAM = 'No streams right now: there is too much to do. Ask for the purchase itself, or come again later.';
const TOO_MANY = 'Too many streams are open. Ask again, or ask for the purchase with `wait`.';

async function tell(
  following: Following,
  { req, res, replies, param }: Exchange,
  poll: AbortController,
  { streamTimes, log, onBug }: HttpServices,
): Promise<void> {
  replies.count('stream');
  if (req.method === 'HEAD') {
    following.close();
    res.setHeader('Content-Type', 'text/event-stream');
    return void res.end();
  }
  const ids = { requestId: param('requestId'), saleId: param('saleId') };
  const stream = new EventStream(req, res, streamTimes, () => poll.abort());
  try {
    for await (const step of following.steps()) stream.send(eventOf(step, ids));
  } catch (error) {
    log.error({ err: error }, 'a stream of events failed in a way nobody foresaw');
    onBug(error); // the head is sent: all that is left is to end
  } finally {
    following.close();
    stream.end();
  }
}

/** The id is the word: it says how far the buyer has been told, on whichever api he comes again. */
const eventOf = ({ word, status }: PurchaseStep, ids: object) => ({
  id: word,
  event: word,
  data: { ...ids, ...status },
});

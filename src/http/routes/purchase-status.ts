import { z } from 'zod';
import { id, saleId } from '../../contract/fields.js';
import { purchaseSchema } from '../../contract/purchases.js';
import { assertNever } from '../../core/errors.js';
import { must } from '../../core/field-errors.js';
import type { Body } from '../../admission/degrade/degraded-reads.js';
import type { Following } from '../../purchase/follow-purchase.js';
import { isStepWord, STEP_RANKS, type PurchaseStep, type StepWord } from '../../purchase/follow-purchase.js';
import { nameTrace, noContent, problem, startPoll } from '../answer.js';
import { answerStreamHead, EventStream, isStillAllowed } from '../event-stream.js';
import { defineRoute, type Call, type RouteServices } from '../route.js';
import { answerRead, readable } from './degraded-read.js';
import { SIGNATURE } from './proof-headers.js';

/** Proxies on the way cut off longer waits, and a longer wait would hold a connection for no gain. */
const WAIT_SECONDS_MAX = 30;
const waitError = { error: must(`a whole number of seconds from 0 to ${WAIT_SECONDS_MAX}`) };

const params = z.object({ saleId, requestId: id });

export const purchaseStatus = defineRoute({
  method: 'get',
  path: '/v1/sales/{saleId}/purchases/{requestId}',
  label: 'purchase_status',
  operationId: 'readPurchase',
  summary: 'Returns the status of a purchase. Waits up to `wait` seconds while it is pending.',
  access: 'sale_buyer',
  params,
  query: z.object({
    wait: z
      .string(waitError)
      .regex(/^[0-9]{1,2}$/, waitError)
      .transform(Number)
      .pipe(z.int().max(WAIT_SECONDS_MAX, waitError))
      .meta({ override: { type: 'integer', minimum: 0, maximum: WAIT_SECONDS_MAX } })
      .optional(),
  }),
  headers: SIGNATURE,
  answers: { 200: readable('the purchase', purchaseSchema) },
  problems: ['purchase_not_found'],
  async handle(call, services) {
    const { userId, params: ids, query } = call;
    const { signal } = startPoll(call.res, services.lifecycle);
    const waitMs = (query.wait ?? 0) * 1000;
    return answerRead(
      {
        endpoint: 'status',
        key: `${userId}/${ids.saleId}/${ids.requestId}`,
        ids,
        requestId: ids.requestId,
        caller: () => userId,
        word: ({ status }: Body) => String(status),
        missing: () => 'purchase_not_found' as const,
        keeps: ({ status }: Body) => status !== 'pending',
        async source() {
          const shares = waitMs > 0 ? services.limitedAddress(services.addressOf(call.req)) : [];
          const status = await services.getPurchase.get({ ...ids, userId, waitMs, shares, signal });
          return status.status === 'not_found' ? null : { ...ids, ...status };
        },
      },
      services,
    );
  },
});

export const purchaseEvents = defineRoute({
  method: 'get',
  path: '/v1/sales/{saleId}/purchases/{requestId}/events',
  label: 'purchase_events',
  operationId: 'followPurchase',
  summary: 'Streams the status changes of a purchase until its end. Reconnect with Last-Event-ID.',
  access: 'sale_buyer',
  params,
  headers: [
    {
      name: 'Last-Event-ID',
      required: false,
      description: 'the last event that the client received',
      schema: z.enum(Object.keys(STEP_RANKS) as [StepWord, ...StepWord[]]),
    },
    ...SIGNATURE,
  ],
  answers: {
    200: {
      description:
        'id and event: `pending`, `ordered`, then `paid`, `cancelled` or `expired`, or `failed`; data: the purchase as' +
        ' JSON. The stream ends after the last event, or after some minutes with `retry`.',
      type: 'text/event-stream',
    },
    204: { description: 'Last-Event-ID was the last event' },
  },
  problems: ['purchase_not_found', 'overloaded'],
  async handle(call, services) {
    const { userId, params: ids, req } = call;
    const { requestId } = ids;
    // A stream has no degraded form. The client can poll the status of the purchase instead.
    const { degrade, lifecycle } = services;
    const level = degrade.isOn ? degrade.rulingOf('status', userId)?.level : undefined;
    if (level !== undefined && level !== 'L0') return problem('degraded', { requestId, detail: NO_STREAM });
    const lastEventId = req.headers['last-event-id'];
    const seen = isStepWord(lastEventId) ? lastEventId : null;
    const poll = startPoll(call.res, lifecycle);
    const shares = services.limitedAddress(services.addressOf(req));
    const answer = await services.followPurchase.open({ ...ids, userId, seen, shares, signal: poll.signal });
    switch (answer.outcome) {
      case 'following':
        await stream(answer, call, poll, services);
        return null;
      case 'ended': // an EventSource does not reconnect after a 204
        return noContent('ended');
      case 'not_found':
        return problem('purchase_not_found', { requestId });
      case 'overloaded':
        return problem('overloaded', { requestId, detail: TOO_MANY });
      default:
        return assertNever(answer);
    }
  },
});

const NO_STREAM = 'This server is too busy for streams. Get the purchase instead, or try again later.';
const TOO_MANY = 'Too many streams are open. Try again, or get the purchase with `wait`.';

async function stream(
  following: Following,
  call: Call<z.infer<typeof params>>,
  poll: AbortController,
  services: RouteServices,
): Promise<void> {
  const { streamTimes, log, onBug } = services;
  const { req, res, counter, params } = call;
  counter.count('stream');
  nameTrace(call);
  if (req.method === 'HEAD') {
    following.close();
    return answerStreamHead(res);
  }
  const events = new EventStream(req, res, streamTimes, isStillAllowed(call, services), () => poll.abort());
  try {
    for await (const step of following.steps()) events.send(eventOf(step, params));
  } catch (error) {
    log.error({ err: error, traceId: call.traceId }, 'unexpected error in a stream of events');
    onBug(error); // the head has been sent, so the stream can only end
  } finally {
    following.close();
    events.end();
  }
}

/** The id of an event is its word. It says how far the buyer has been notified, for any api. */
const eventOf = ({ word, status }: PurchaseStep, ids: object) => ({
  id: word,
  event: word,
  data: { ...ids, ...status },
});

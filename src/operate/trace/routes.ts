import { z } from 'zod';
import { foundTraces, type Trace } from '../../contract/traces.js';
import { id, isoTimeOrNull, saleId, userId } from '../../contract/fields.js';
import { json, problem } from '../../http/answer.js';
import { operatorRoute, type RouteServices } from '../../http/route.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import type { TraceServices } from './services.js';
import type { PurchaseTrace } from './trace-purchase.js';

const TOO_MANY = 'This api already handles other trace requests. Try again.';

export const tracePurchase = operatorRoute({
  method: 'get',
  path: '/admin/v1/requests/{id}',
  operationId: 'tracePurchase',
  summary:
    'Traces a purchase by its request id, batch id, order id, trace id or dead letter. Returns all purchases that match; `more`' +
    ' is true if there are others.',
  access: 'viewer',
  params: z.object({ id }),
  query: z.strictObject({ saleId: saleId.optional(), userId: userId.optional() }),
  answers: { 200: { description: 'found', schema: foundTraces } },
  problems: ['purchase_not_found', 'overloaded'],
  async handle({ params: { id }, query, userId, res }, { trace, operatorPlaces }: RouteServices & TraceServices) {
    const leave = operatorPlaces.traces.take(userId);
    if (leave === null) return problem('overloaded', { detail: TOO_MANY });
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    try {
      const answer = await trace.trace({ id, ...withoutUndefined(query) }, gone.signal);
      if (answer.outcome === 'not_found') return problem('purchase_not_found', { detail: answer.why });
      return json(200, 'found', { purchases: answer.traces.map(traceBody), more: answer.more });
    } catch (error) {
      if (error === gone.signal.reason) return null; // the client has disconnected
      throw error;
    } finally {
      leave();
    }
  },
});

export const traceBody = ({ request, traceId, standing, steps, timeline }: PurchaseTrace): Trace => ({
  ...request,
  traceId,
  ...standing,
  nextAt: isoTimeOrNull(timeline.find(({ state }) => state === 'waiting')?.dueAtMs ?? null),
  timeline: timeline.map(({ atMs, dueAtMs, ...stage }) => ({
    ...stage,
    at: isoTimeOrNull(atMs),
    dueAt: isoTimeOrNull(dueAtMs),
  })),
  steps: steps.map(({ atMs, ...step }) => ({ at: isoTimeOrNull(atMs), ...step })),
});

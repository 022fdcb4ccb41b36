import { z } from 'zod';
import { isId, isSaleId } from '../../core/ids.js';
import type { HttpServices } from '../services.js';
import { traceBody } from '../trace-body.js';
import { asAdmin } from './admin-sales.js';
import { fieldErrors, wrongFields } from './query-fields.js';
import type { Router } from './router.js';

const query = z.strictObject({
  saleId: z.string('must be given once').refine(isSaleId, 'must be a whole number').optional(),
  userId: z.string('must be given once').refine(isId, 'must be an id').optional(),
});

/** The whole life of a purchase, by its request id, batch id or order id. */
export function mountTraces(router: Router, services: HttpServices): void {
  router.mount('admin', '/admin/v1/requests/{id}', {
    get: asAdmin(services, async ({ req, res, replies, param }) => {
      const id = param('id');
      if (!isId(id)) return replies.problem(req, res, 'bad_request', { detail: 'That is no id.' });
      const read = query.safeParse({ ...req.query });
      if (!read.success) {
        const errors = fieldErrors(read.error);
        return replies.problem(req, res, 'bad_request', { detail: wrongFields(errors), errors });
      }
      const { saleId, userId } = read.data;
      const answer = await services.trace.trace({
        id,
        ...(saleId === undefined ? {} : { saleId }),
        ...(userId === undefined ? {} : { userId }),
      });
      if (answer.outcome === 'not_found')
        return replies.problem(req, res, 'purchase_not_found', { detail: answer.why });
      replies.json(req, res, 200, 'found', { purchases: answer.traces.map(traceBody), more: answer.more });
    }),
  });
}

import { z } from 'zod';
import { PLAN_STATUSES, type PlannedSale } from '../../sales/schedule/plan-sales.js';
import { json } from '../answer.js';
import { defineRoute } from '../route.js';
import { isoTimeOrNull, saleSchema, text, time } from '../schemas.js';
import { saleBody } from './admin-sales.js';

const WEEK_MS = 7 * 86_400_000;

/** The coming week, with what each sale still lacks. */
export const readSalePlan = defineRoute({
  method: 'get',
  path: '/admin/v1/sale-plan',
  label: 'admin',
  operationId: 'readSalePlan',
  summary: 'The sales that open within a week, or have opened and are not closed, with what they lack.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'by the time they open',
      schema: z.object({
        sales: z.array(
          z
            .object({
              sale: saleSchema,
              status: z.enum(PLAN_STATUSES),
              missing: z.array(text),
              warmsAt: time.nullable(),
            })
            .meta({ id: 'PlannedSale' }),
        ),
      }),
    },
  },
  problems: [],
  async handle(_call, { plan }) {
    const planned = await plan(WEEK_MS);
    return json(200, 'found', { sales: planned.map(plannedBody) });
  },
});

/** A planned sale as programs read it, over HTTP and from the command line. */
export const plannedBody = ({ sale, status, missing, warmsAtMs }: PlannedSale): object => ({
  sale: saleBody(sale),
  status,
  missing,
  warmsAt: isoTimeOrNull(warmsAtMs),
});

import { z } from 'zod';
import { isoTimeOrNull } from '../../contract/fields.js';
import { plannedSale, type PlannedSale as PlannedBody } from '../../contract/sales.js';
import { type PlannedSale } from '../../sales/schedule/plan-sales.js';
import { json } from '../answer.js';
import { defineRoute } from '../route.js';
import { saleBody } from '../../operate/sales/routes.js';

const WEEK_MS = 7 * 86_400_000;

/** Lists the sales of the coming week, with the missing preparations of each. */
export const readSalePlan = defineRoute({
  method: 'get',
  path: '/admin/v1/sale-plan',
  label: 'admin',
  operationId: 'readSalePlan',
  summary: 'Lists sales that open within a week or are open, with what each still lacks.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'ordered by opening time',
      schema: z.object({ sales: z.array(plannedSale) }),
    },
  },
  problems: [],
  async handle(_call, { plan }) {
    const planned = await plan(WEEK_MS);
    return json(200, 'found', { sales: planned.map(plannedBody) });
  },
});

/** Formats a planned sale for programs, over HTTP and on the command line. */
export const plannedBody = ({ sale, status, missing, warmsAtMs }: PlannedSale): PlannedBody => ({
  sale: saleBody(sale),
  status,
  missing,
  warmsAt: isoTimeOrNull(warmsAtMs),
});

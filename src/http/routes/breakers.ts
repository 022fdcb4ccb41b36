import { z } from 'zod';
import { mode } from '../../admission/layer.js';
import { OperationalError } from '../../core/errors.js';
import { BREAKER_STATES } from '../../core/ports/admission-stores.js';
import { json } from '../answer.js';
import { defineRoute } from '../route.js';
import { count, text } from '../schemas.js';

export const readBreakers = defineRoute({
  method: 'get',
  path: '/admin/v1/breakers',
  label: 'admin',
  operationId: 'readBreakers',
  summary:
    'Breakers around the servers: what all apis treat each as (`by` is `shared`), then those of single apis that are not closed.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'as this api knows them; while the layer is off, all are closed',
      schema: z.object({
        mode,
        breakers: z.array(
          z
            .object({
              name: text,
              state: z.enum(BREAKER_STATES),
              sinceMs: count.nullable().meta({ description: 'Unix ms; null: not known since when' }),
              by: text.meta({ description: '`shared`, or host and process id of an api' }),
            })
            .meta({ id: 'Breaker' }),
        ),
      }),
    },
  },
  problems: [],
  async handle(_call, { breakers, ruleReports }) {
    const { mode, standings } = breakers;
    const names = new Map<string, string>();
    if (standings.some(({ processId }) => processId !== null)) {
      const reports = await ruleReports.live().catch((error: unknown) => {
        if (error instanceof OperationalError) return []; // this is looked at most when Redis is away
        throw error;
      });
      for (const { processId, host, pid } of reports) names.set(processId, `${host}:${pid}`);
    }
    const rows = standings.map(({ dependency, state, sinceMs, processId }) => ({
      name: dependency,
      state,
      sinceMs: sinceMs === null ? null : Math.round(sinceMs),
      by: processId === null ? 'shared' : (names.get(processId) ?? processId),
    }));
    return json(200, 'found', { mode, breakers: rows });
  },
});

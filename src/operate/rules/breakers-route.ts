import { breakers as breakersSchema } from '../../contract/rules.js';
import { OperationalError } from '../../core/errors.js';
import { json } from '../../http/answer.js';
import { operatorRoute, type RouteServices } from '../../http/route.js';
import type { RuleServices } from './services.js';

export const readBreakers = operatorRoute({
  method: 'get',
  path: '/admin/v1/breakers',
  operationId: 'readBreakers',
  summary:
    'Lists the circuit breakers: first the state that all apis share (`by` is `shared`), then single apis whose own breaker is not closed.',
  access: 'viewer',
  answers: {
    200: {
      description: 'the breakers as this api knows them; all are closed while the layer is off',
      schema: breakersSchema,
    },
  },
  problems: [],
  async handle(_call, { breakers, ruleReports }: RouteServices & RuleServices) {
    const { mode, standings } = breakers;
    const names = new Map<string, string>();
    if (standings.some(({ processId }) => processId !== null)) {
      const reports = await ruleReports.live().catch((error: unknown) => {
        if (error instanceof OperationalError) return []; // operators look at this most often when Redis is down
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

import { z } from 'zod';
import { percent, switched, switches as switchesSchema, type Switched, type Switches } from '../../contract/rules.js';
import { text } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import { fieldError } from '../../core/field-errors.js';
import { LEVELS } from '../../admission/degrade/degrade.js';
import type { Unfit } from './rule-admin.js';
import { readSwitchChange, type FoundSwitches, type SwitchAnswer } from './switches.js';
import { ENDPOINTS } from '../../admission/layer.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { badFields, checkedBody, operatorRoute, type Route } from '../../http/route.js';
import { reasonErrors } from './routes.js';
import type { RuleServices } from './services.js';

const readSwitches = operatorRoute({
  method: 'get',
  path: '/admin/v1/switches',
  operationId: 'readSwitches',
  summary: 'Returns the degradation level of each endpoint and the share of users that it applies to.',
  access: 'viewer',
  answers: {
    200: {
      description: 'the switches; `inForce` is false while the layer is off or in a dry run',
      schema: switchesSchema,
    },
  },
  problems: ['rules_unfit'],
  async handle(_call, { switches }: RuleServices) {
    const found = await switches.show();
    return found.outcome === 'rules_unfit' ? unfitAnswer(found) : json(200, found.outcome, switchesBody(found));
  },
});

const setSwitch = operatorRoute({
  method: 'put',
  path: '/admin/v1/switches/{endpoint}',
  operationId: 'setSwitch',
  summary:
    'Sets the degradation level of one endpoint. A change is a new version of the rules. Purchases allow only L0 and L4.',
  access: 'operator',
  params: z.object({ endpoint: text.meta({ override: { enum: ENDPOINTS } }) }),
  body: checkedBody<object>(z.object({ level: z.enum(LEVELS), percent: percent.default(100) }), (json) =>
    typeof json === 'object' && json !== null
      ? { value: json }
      : { errors: [fieldError('body', 'must be {"level": "L0" to "L4", "percent": 0 to 100}')] },
  ),
  answers: {
    200: {
      description:
        'switched; `seenAtOnce` is false if Redis did not answer: each process then reads it from MySQL within ten seconds',
      schema: switched,
    },
  },
  problems: ['version_conflict', 'rules_unfit'],
  async handle({ params: { endpoint }, body, userId }, { switches }: RuleServices) {
    if ('endpoint' in body) return badFields([fieldError('endpoint', 'belongs in the address, not in the body')]);
    const read = readSwitchChange({ ...body, endpoint });
    if (read.read === 'refused') return badFields(read.errors);
    const answer = await switches.set(read.change, userId);
    switch (answer.outcome) {
      case 'switched':
        return json(200, answer.outcome, switchedBody(answer));
      case 'version_conflict':
        return problem(answer.outcome, { detail: 'Someone else changed the rules at the same time. Try again.' });
      case 'rules_unfit':
        return unfitAnswer(answer);
      default:
        return assertNever(answer);
    }
  },
});

export const switchRoutes: readonly Route<RuleServices>[] = [readSwitches, setSwitch];

const unfitAnswer = ({ reasons }: Unfit): Answer<'rules_unfit'> =>
  problem('rules_unfit', { errors: reasonErrors(reasons) });

export const switchesBody = ({ version, mode, switches }: FoundSwitches): Switches => ({ version, mode, switches });

export const switchedBody = ({
  outcome,
  version,
  seenAtOnce,
  row,
}: Extract<SwitchAnswer, { outcome: 'switched' }>): Switched => ({ outcome, version, seenAtOnce, ...row });

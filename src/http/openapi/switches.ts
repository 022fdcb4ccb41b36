import { ENDPOINTS } from '../../admission/layer.js';
import { LEVELS } from '../../admission/degrade/degrade.js';
import { ADMIN, BEARER, body, count, json, object, parameter, problems } from './parts.js';

const percent = { type: 'number', minimum: 0, maximum: 100, default: 100 };
const row = {
  ...{ endpoint: { enum: ENDPOINTS }, level: { enum: LEVELS }, percent },
  inForce: { type: 'boolean' },
};

const switches = {
  get: {
    operationId: 'readSwitches',
    summary:
      'How much of an answer each endpoint gives, as operators have switched it, and to which share of the users.',
    security: BEARER,
    responses: {
      200: json(
        'the switches; `inForce` is false while the layer is off or in a dry run',
        object({
          ...{ version: count, mode: { enum: ['off', 'dry_run', 'on'] } },
          switches: { type: 'array', items: object(row) },
        }),
      ),
      ...problems(...ADMIN, 'rules_unfit'),
    },
  },
};

const oneSwitch = {
  put: {
    operationId: 'setSwitch',
    summary:
      'Set the switch of one endpoint, in force everywhere within a second: a new version of the rules, with nothing' +
      ' else changed. A purchase knows L0 and L4 only.',
    security: BEARER,
    parameters: [parameter('path', 'endpoint', { enum: ENDPOINTS })],
    requestBody: body(object({ level: { enum: LEVELS }, percent }, ['level']), true),
    responses: {
      200: json(
        'switched; not `seenAtOnce`: Redis did not answer, every process finds it in MySQL within ten seconds',
        object({ outcome: { const: 'switched' }, version: count, seenAtOnce: { type: 'boolean' }, ...row }),
      ),
      ...problems(...ADMIN, 'version_conflict', 'rules_unfit', 'payload_too_large', 'unsupported_media_type'),
    },
  },
};

export const switchPaths = {
  '/admin/v1/switches': switches,
  '/admin/v1/switches/{endpoint}': oneSwitch,
};

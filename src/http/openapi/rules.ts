import { ADMIN, BEARER, body, count, json, list, object, parameter, problems, ref, ROWS, text } from './parts.js';

const fieldErrors = { type: 'array', items: object({ field: text, message: text }) };
const READS_BODY = ['payload_too_large', 'unsupported_media_type'] as const;

const rules = {
  get: {
    operationId: 'readRules',
    summary: 'The newest rules of the entry, with every default filled in. Version 0: nobody has published any.',
    security: BEARER,
    responses: { 200: json('the rules', ref('Rules')), ...problems(...ADMIN) },
  },
  put: {
    operationId: 'publishRules',
    summary:
      'Put other rules in force, everywhere within a second. `version` is the one they were made from: whoever was' +
      ' faster wins, the other one hears 409. Layers that are left out are off.',
    security: BEARER,
    requestBody: body(ref('Rules'), true),
    responses: {
      200: json(
        'published; not `seenAtOnce`: Redis did not answer, every process finds them in MySQL within ten seconds',
        object({ outcome: { const: 'published' }, version: count, seenAtOnce: { type: 'boolean' } }),
      ),
      ...problems(...ADMIN, 'version_conflict', ...READS_BODY),
    },
  },
};

const check = {
  post: {
    operationId: 'checkRules',
    summary: 'Says what would be wrong with rules; changes nothing.',
    security: BEARER,
    requestBody: body(ref('Rules'), true),
    responses: {
      200: json('what was found', object({ valid: { type: 'boolean' }, errors: fieldErrors })),
      ...problems(...ADMIN, ...READS_BODY),
    },
  },
};

const history = {
  get: {
    operationId: 'listRules',
    summary: 'Who published rules, the newest first.',
    security: BEARER,
    parameters: [ROWS],
    responses: { 200: json('changes', object({ changes: list('RuleChange') })), ...problems(...ADMIN) },
  },
};

const oneOfHistory = {
  get: {
    operationId: 'readOldRules',
    summary: 'The rules of one version, as they were published.',
    security: BEARER,
    parameters: [parameter('path', 'version', count)],
    responses: { 200: json('the rules', ref('Rules')), ...problems(...ADMIN, 'rules_not_found') },
  },
};

export const rulePaths = {
  '/admin/v1/rules': rules,
  '/admin/v1/rules/check': check,
  '/admin/v1/rules/history': history,
  '/admin/v1/rules/history/{version}': oneOfHistory,
};

import { z } from 'zod';
import {
  canaryAction,
  checkedRules,
  publishedDocument,
  publishedRules,
  ruleChanges,
  rulesDocument,
  rulesStatus,
  rulesToPublish,
  storedRules,
  type CheckedRules,
  type RuleChange,
  type RulesDocument,
} from '../../contract/rules.js';
import { isoTime, limit, text } from '../../contract/fields.js';
import { assertNever } from '../../core/errors.js';
import { fieldError, fieldErrors, plainError, type FieldError } from '../../core/field-errors.js';
import { parseJson } from '../../core/parse-json.js';
import type { RuleChange as StoredChange } from '../../core/ports/rules.js';
import type { RuleReason } from '../../admission/rules/rule-set.js';
import { CANARY_RUNNING, canaryBody, NO_CANARY } from './canary.js';
import type { RuleServices } from './services.js';
import { judgeInForce, rulesInForceBody } from './where-in-force.js';
import { json, problem } from '../../http/answer.js';
import { badFields, operatorRoute, jsonBody, type Route } from '../../http/route.js';

/** Just enough for lists of the maximum size. */
const RULES_BYTES_MAX = 2 * 1024 * 1024;

/** Reads `{"version": …, "rules": {…}}`, or returns its errors. */
export function readRulesDocument(text: string): RulesDocument | readonly FieldError[] {
  const parsed = parseJson(text, 'The document');
  if ('error' in parsed) return [{ field: 'body', message: parsed.error }];
  const read = rulesDocument.safeParse(parsed.value, { error: plainError });
  return read.success ? read.data : fieldErrors(read.error);
}

const document = jsonBody(rulesDocument, RULES_BYTES_MAX);

const readRules = operatorRoute({
  method: 'get',
  path: '/admin/v1/rules',
  operationId: 'readRules',
  summary: 'Returns the newest admission rules, with defaults filled in. Version 0 means that none were published.',
  access: 'viewer',
  answers: { 200: { description: 'the rules', schema: storedRules } },
  problems: [],
  handle: async (_call, { rules }: RuleServices) => json(200, 'found', await rules.show()),
});

const publishRules = operatorRoute({
  method: 'put',
  path: '/admin/v1/rules',
  operationId: 'publishRules',
  summary:
    'Publishes new rules. Apis follow within a second; `/admin/v1/rules/status` shows which do. `version` is the version that' +
    ' you edited: if someone published in between, you get 409. Omitted layers are off. With `canary` a share of users' +
    ' tries the rules first.',
  access: 'admin',
  body: { ...jsonBody(publishedDocument, RULES_BYTES_MAX), schema: rulesToPublish },
  answers: {
    200: {
      description:
        'published; `seenAtOnce` is false if Redis did not answer: each process then reads them from MySQL within ten seconds',
      schema: publishedRules,
    },
  },
  problems: ['version_conflict', 'wrong_state'],
  async handle({ body, userId }, { rules }: RuleServices) {
    if (body.version === undefined) {
      return badFields([fieldError('version', 'is missing: it must be the version that you edited')]);
    }
    const answer = await rules.publish(body.rules, body.version, userId, body.canary);
    switch (answer.outcome) {
      case 'published':
        return json(200, answer.outcome, answer);
      case 'invalid':
        return badFields(reasonErrors(answer.reasons));
      case 'version_conflict':
        return problem(answer.outcome, { detail: `The newest version is ${answer.version} now.` });
      case 'canary_running':
        return problem('wrong_state', { detail: CANARY_RUNNING });
      default:
        return assertNever(answer);
    }
  },
});

const endCanary = operatorRoute({
  method: 'post',
  path: '/admin/v1/rules/canary',
  operationId: 'endRulesCanary',
  summary: 'Ends the canary of rules: its rules apply to all users (`promote`) or to none (`rollback`).',
  access: 'admin',
  body: jsonBody(canaryAction),
  answers: { 200: { description: 'a new version without a canary is published', schema: publishedRules } },
  problems: ['wrong_state', 'version_conflict', 'rules_unfit'],
  async handle({ body: { action }, userId }, { rules }: RuleServices) {
    const newest = await rules.read();
    if ('outcome' in newest) return problem(newest.outcome, { errors: reasonErrors(newest.reasons) });
    const answer = await rules.endCanary(newest, action === 'promote' ? 'promoted' : 'rolled_back', userId);
    switch (answer.outcome) {
      case 'published':
        return json(200, answer.outcome, answer);
      case 'no_canary':
        return problem('wrong_state', { detail: NO_CANARY });
      case 'invalid':
        return problem('rules_unfit', { errors: reasonErrors(answer.reasons) });
      case 'version_conflict':
        return problem(answer.outcome);
      default:
        return assertNever(answer);
    }
  },
});

const readRulesStatus = operatorRoute({
  method: 'get',
  path: '/admin/v1/rules/status',
  operationId: 'readRulesStatus',
  summary: 'Tells where the newest rules are in force, as each running api reported within the last seconds.',
  access: 'viewer',
  answers: {
    200: {
      description: '`nowhere`: no running api has reported, including this one',
      schema: rulesStatus,
    },
  },
  problems: [],
  async handle(_call, { rules, ruleReports }: RuleServices) {
    const { version, canary } = await rules.standing();
    const reports = await ruleReports.live();
    const body = rulesInForceBody(judgeInForce(version, reports));
    return json(200, 'found', { ...body, canary: canaryBody(canary, reports) });
  },
});

const checkRules = operatorRoute({
  method: 'post',
  path: '/admin/v1/rules/check',
  operationId: 'checkRules',
  summary: 'Checks rules without publishing them.',
  access: 'viewer',
  body: document,
  answers: { 200: { description: 'what was found', schema: checkedRules } },
  problems: [],
  handle: ({ body }, { rules }: RuleServices) => json(200, 'checked', checkedRulesBody(rules.check(body.rules))),
});

const listRules = operatorRoute({
  method: 'get',
  path: '/admin/v1/rules/history',
  operationId: 'listRules',
  summary: 'Lists who published rules, newest first.',
  access: 'viewer',
  query: z.strictObject({ limit }),
  answers: { 200: { description: 'the changes', schema: ruleChanges } },
  problems: [],
  async handle({ query }, { rules }: RuleServices) {
    const changes = await rules.history(query.limit);
    return json(200, 'found', { changes: changes.map(ruleChangeBody) });
  },
});

const readOldRules = operatorRoute({
  method: 'get',
  path: '/admin/v1/rules/history/{version}',
  operationId: 'readOldRules',
  summary: 'Returns the rules of one version as published.',
  access: 'viewer',
  params: z.object({ version: text.meta({ override: { type: 'integer', minimum: 0 } }) }),
  answers: { 200: { description: 'the rules', schema: storedRules } },
  problems: ['rules_not_found'],
  async handle({ params: { version } }, { rules }: RuleServices) {
    // A number that does not fit the column names no version.
    const stored = /^(0|[1-9]\d{0,8})$/.test(version) ? await rules.find(Number(version)) : null;
    return stored === null ? problem('rules_not_found') : json(200, 'found', stored);
  },
});

export const ruleRoutes: readonly Route<RuleServices>[] = [
  readRules,
  readRulesStatus,
  publishRules,
  endCanary,
  checkRules,
  listRules,
  readOldRules,
];

export const ruleChangeBody = ({ version, actor, atMs }: StoredChange): RuleChange => ({
  version,
  actor,
  at: isoTime(atMs),
});

export const checkedRulesBody = (reasons: readonly RuleReason[]): CheckedRules => ({
  valid: reasons.length === 0,
  errors: reasonErrors(reasons),
});

export const reasonErrors = (reasons: readonly RuleReason[]): FieldError[] =>
  reasons.map(({ path, message }) => fieldError(path, message));

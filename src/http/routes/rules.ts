import { assertNever } from '../../core/errors.js';
import type { PublishAnswer } from '../../admission/rules/rule-admin.js';
import type { RuleReason } from '../../admission/rules/rule-set.js';
import { collectBody } from '../body.js';
import type { FieldError } from '../../core/field-errors.js';
import { promisesJson } from '../purchase-request.js';
import { checkedRulesBody, ruleChangeBody } from '../rule-bodies.js';
import type { HttpServices } from '../services.js';
import { asAdmin, type AdminHandler } from './admin-sales.js';
import { readQuery } from './reconcile-query.js';
import { wrongFields } from './query-fields.js';
import type { Exchange, Handler, Router } from './router.js';
import {
  HISTORY_QUERY,
  isRulesVersion,
  readRulesDocument,
  RULES_BYTES_MAX,
  type RulesDocument,
} from './rules-document.js';

const HISTORY_DEFAULT = 50;

/** The rules of the entry: what is in force, what would be wrong with others, and putting others in force. */
export function mountRules(router: Router, services: HttpServices): void {
  const { rules } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/rules', {
    get: admin(async ({ req, res, replies }) => replies.json(req, res, 200, 'found', await rules.show())),
    put: admin(async (exchange, { userId: actor }) => {
      const document = await documentIn(exchange);
      if (document === null) return;
      if (document.version === undefined) return badRequest(exchange, [NO_VERSION]);
      answerPublish(exchange, await rules.publish(document.rules, document.version, actor));
    }),
  });

  router.mount('admin', '/admin/v1/rules/check', {
    post: admin(async (exchange) => {
      const document = await documentIn(exchange);
      if (document === null) return;
      const reasons = rules.check(document.rules);
      exchange.replies.json(exchange.req, exchange.res, 200, 'checked', checkedRulesBody(reasons));
    }),
  });

  router.mount('admin', '/admin/v1/rules/history', {
    get: admin(async (exchange) => {
      const read = readQuery(HISTORY_QUERY, { ...exchange.req.query });
      if (!('query' in read)) return badRequest(exchange, read);
      const changes = await rules.history(read.query.limit ?? HISTORY_DEFAULT);
      exchange.replies.json(exchange.req, exchange.res, 200, 'found', { changes: changes.map(ruleChangeBody) });
    }),
  });

  router.mount('admin', '/admin/v1/rules/history/{version}', {
    get: admin(async ({ req, res, replies, param }) => {
      const version = param('version');
      const stored = isRulesVersion(version) ? await rules.find(Number(version)) : null;
      if (stored === null) return replies.problem(req, res, 'rules_not_found');
      replies.json(req, res, 200, 'found', stored);
    }),
  });
}

const NO_VERSION: FieldError = { field: 'version', message: 'must be the version that these rules were made from' };

/** Answers itself and returns null when there is no document that could be read. */
async function documentIn(exchange: Exchange): Promise<RulesDocument | null> {
  const { req, res, replies } = exchange;
  const refuse = (code: 'unsupported_media_type' | 'payload_too_large'): null => {
    replies.problem(req, res, code);
    return null;
  };
  if (!promisesJson(req.headers)) return refuse('unsupported_media_type');
  const body = await new Promise<string | null>((resolve) => collectBody(req, resolve, RULES_BYTES_MAX));
  if (body === null) return refuse('payload_too_large');
  const read = readRulesDocument(body);
  if ('rules' in read) return read;
  badRequest(exchange, read);
  return null;
}

function answerPublish(exchange: Exchange, answer: PublishAnswer): void {
  const { req, res, replies } = exchange;
  switch (answer.outcome) {
    case 'published':
      return replies.json(req, res, 200, answer.outcome, answer);
    case 'invalid':
      return badRequest(exchange, fieldsOf(answer.reasons));
    case 'version_conflict':
      return replies.problem(req, res, answer.outcome, { detail: `Version ${answer.version} is the newest now.` });
    default:
      return assertNever(answer);
  }
}

const fieldsOf = (reasons: readonly RuleReason[]): FieldError[] =>
  reasons.map(({ path, message }) => ({ field: path, message }));

function badRequest({ req, res, replies }: Exchange, errors: readonly FieldError[]): void {
  replies.problem(req, res, 'bad_request', { detail: wrongFields(errors), errors });
}

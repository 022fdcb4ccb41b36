import { assertNever } from '../../core/errors.js';
import { type SwitchAnswer, type Unfit, readSwitchChange } from '../../admission/degrade/switches.js';
import { collectBody } from '../body.js';
import type { FieldError } from '../../core/field-errors.js';
import { promisesJson } from '../purchase-request.js';
import type { HttpServices } from '../services.js';
import { switchedBody, switchesBody } from '../switch-bodies.js';
import { asAdmin, type AdminHandler } from './admin-sales.js';
import { wrongFields } from './query-fields.js';
import type { Exchange, Handler, Router } from './router.js';

/** The switches of the degradation: how they stand, and setting one. */
export function mountSwitches(router: Router, services: HttpServices): void {
  const { switches } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/switches', {
    get: admin(async (exchange) => {
      const { req, res, replies } = exchange;
      const found = await switches.show();
      if (found.outcome === 'rules_unfit') return answerUnfit(exchange, found);
      replies.json(req, res, 200, found.outcome, switchesBody(found));
    }),
  });

  router.mount('admin', '/admin/v1/switches/{endpoint}', {
    put: admin(async (exchange, { userId: actor }) => {
      const { req, res, replies, param } = exchange;
      if (!promisesJson(req.headers)) return replies.problem(req, res, 'unsupported_media_type');
      const text = await new Promise<string | null>((resolve) => collectBody(req, resolve));
      if (text === null) return replies.problem(req, res, 'payload_too_large');
      const fields = fieldsOf(text);
      if (fields === null) return badRequest(exchange, [NO_BODY]);
      if ('endpoint' in fields) return badRequest(exchange, [TWICE]);
      const read = readSwitchChange({ ...fields, endpoint: param('endpoint') });
      if (read.read === 'refused') return badRequest(exchange, read.errors);
      answerSwitch(exchange, await switches.set(read.change, actor));
    }),
  });
}

const NO_BODY: FieldError = { field: 'body', message: 'must be {"level": "L0" to "L4", "percent": 0 to 100}' };
const TWICE: FieldError = { field: 'endpoint', message: 'stands in the address' };

/** Null when the body is nothing that has fields. */
function fieldsOf(text: string): object | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function answerSwitch(exchange: Exchange, answer: SwitchAnswer): void {
  const { req, res, replies } = exchange;
  switch (answer.outcome) {
    case 'switched':
      return replies.json(req, res, 200, answer.outcome, switchedBody(answer));
    case 'version_conflict':
      return replies.problem(req, res, answer.outcome, { detail: 'Others change the rules all the time. Try again.' });
    case 'rules_unfit':
      return answerUnfit(exchange, answer);
    default:
      return assertNever(answer);
  }
}

function answerUnfit({ req, res, replies }: Exchange, { reasons }: Unfit): void {
  const errors = reasons.map(({ path, message }) => ({ field: path, message }));
  replies.problem(req, res, 'rules_unfit', { errors });
}

function badRequest({ req, res, replies }: Exchange, errors: readonly FieldError[]): void {
  replies.problem(req, res, 'bad_request', { detail: wrongFields(errors), errors });
}

import { z } from 'zod';
import type { AuditFilter, AuditPage } from '../../core/ports/audit-log.js';
import { auditBody } from '../audit-body.js';
import type { FieldError } from '../../core/field-errors.js';
import type { HttpServices } from '../services.js';
import { asAdmin } from './admin-sales.js';
import { fieldErrors, queryLimit, queryTime, wrongFields } from './query-fields.js';
import type { Router } from './router.js';

const LISTED_DEFAULT = 50;
const LISTED_MAX = 200;
const NAME_MAX = 128;

const name = z
  .string('must be given once')
  .min(1, 'must not be empty')
  .max(NAME_MAX, `has up to ${NAME_MAX} characters`);
const query = z.strictObject({
  subject: name.optional(),
  actor: name.optional(),
  action: name.optional(),
  since: queryTime.optional(),
  before: z
    .string('must be given once')
    .regex(/^[1-9][0-9]{0,17}$/, 'must be the number of an entry')
    .optional(),
  limit: queryLimit(LISTED_MAX).optional(),
});

/** Who did what, newest first. */
export function mountAudit(router: Router, services: HttpServices): void {
  router.mount('admin', '/admin/v1/audit', {
    get: asAdmin(services, async ({ req, res, replies }) => {
      const read = readAuditQuery({ ...req.query });
      if (!('page' in read)) {
        return replies.problem(req, res, 'bad_request', { detail: wrongFields(read), errors: read });
      }
      const found = await services.audit.list(read.filter, read.page);
      const next = found.length < read.page.max ? null : (found.at(-1)?.auditId ?? null);
      replies.json(req, res, 200, 'found', { entries: found.map(auditBody), next });
    }),
  });
}

function readAuditQuery(raw: unknown): { filter: AuditFilter; page: AuditPage } | readonly FieldError[] {
  const read = query.safeParse(raw);
  if (!read.success) return fieldErrors(read.error);
  const { since, before, limit: max = LISTED_DEFAULT, ...names } = read.data;
  return {
    filter: { ...names, ...(since === undefined ? {} : { sinceMs: since }) },
    page: { max, ...(before === undefined ? {} : { beforeId: before }) },
  };
}

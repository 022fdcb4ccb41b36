import { z } from 'zod';
import { auditPage, type AuditEntry } from '../../contract/access.js';
import { isoTime, limit, nextOf, queryText, queryTime, rowId } from '../../contract/fields.js';
import type { StoredAuditEntry } from '../../core/ports/audit-log.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json } from '../../http/answer.js';
import { operatorRoute } from '../../http/route.js';

const name = queryText(128).optional();

/** Lists the actions of operators, newest first. */
export const listAudit = operatorRoute({
  method: 'get',
  path: '/admin/v1/audit',
  operationId: 'listAudit',
  summary: 'Lists the audit log, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  query: z.strictObject({
    subject: name,
    actor: name,
    action: name,
    since: queryTime.optional(),
    before: rowId.optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: auditPage } },
  async handle({ query: { since: sinceMs, before: beforeId, limit: max, ...names } }, { audit }) {
    const found = await audit.list(withoutUndefined({ ...names, sinceMs }), { max, ...withoutUndefined({ beforeId }) });
    return json(200, 'found', { entries: found.map(auditBody), next: nextOf(found, max, 'auditId') });
  },
});

export const auditBody = ({ atMs, ...entry }: StoredAuditEntry): AuditEntry => ({ ...entry, at: isoTime(atMs) });

import { ADMIN, BEARER, filterBy, id, json, object, orNull, parameter, problems, ref, text, time } from './parts.js';

const probe = (operationId: string, ok: object, other: object = {}): object => ({
  get: { operationId, responses: { 200: ok, ...other } },
});

const auditLog = {
  get: {
    operationId: 'listAudit',
    summary: 'Who did what, newest first; `next` goes into `before` for the next page.',
    security: BEARER,
    parameters: [
      ...[filterBy('subject', text), filterBy('actor', text), filterBy('action', text)],
      ...[filterBy('since', time), filterBy('before', text)],
      filterBy('limit', { type: 'integer', minimum: 1, maximum: 200, default: 50 }),
    ],
    responses: {
      200: json('a page', object({ entries: { type: 'array', items: ref('AuditEntry') }, next: orNull(text) })),
      ...problems(...ADMIN),
    },
  },
};

const traces = {
  get: {
    operationId: 'tracePurchase',
    summary:
      'The whole life of a purchase. An id that several buyers used gives all of them; `more`: not all are shown.',
    security: BEARER,
    parameters: [
      { ...parameter('path', 'id', id), description: 'request id, batch id or order id' },
      ...[filterBy('saleId', text), filterBy('userId', id)],
    ],
    responses: {
      200: json('found', object({ purchases: { type: 'array', items: ref('Trace') }, more: { type: 'boolean' } })),
      ...problems(...ADMIN, 'purchase_not_found'),
    },
  },
};

export const operationPaths = {
  '/admin/v1/audit': auditLog,
  '/admin/v1/requests/{id}': traces,
  '/healthz': probe('healthz', json('the process is alive', object({ status: { const: 'alive' } }))),
  '/readyz': probe('readyz', json('send traffic', ref('Ready')), { 503: json('do not, and why', ref('Ready')) }),
  '/metrics': probe('metrics', { description: 'Prometheus', content: { 'text/plain': { schema: text } } }),
  '/openapi.json': probe('openapi', json('this document', { type: 'object' })),
};

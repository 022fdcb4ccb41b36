import { me } from '../../contract/access.js';
import { includesRole, ROLES, type Role } from '../../core/roles.js';
import { json } from '../answer.js';
import { operatorRoute } from '../route.js';

export const readMe = operatorRoute({
  method: 'get',
  path: '/admin/v1/me',
  operationId: 'readMe',
  summary: 'Returns the user, the highest role and the expiry of the token.',
  access: 'viewer',
  answers: {
    200: {
      description: 'the caller',
      schema: me,
    },
  },
  handle: ({ userId, roles, expiresAtMs }) =>
    json(200, 'found', { userId, roles, role: highestOf(roles), expiresAtMs: Math.round(expiresAtMs) }),
});

const highestOf = (roles: readonly string[]): Role => ROLES.findLast((role) => includesRole(roles, role)) ?? 'viewer';

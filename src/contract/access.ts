import { z } from 'zod';
import { ROLES } from '../core/roles.js';
import { count, text, time, userId, type BodyOf } from './fields.js';

export const me = z
  .object({ userId, roles: z.array(text), role: z.enum(ROLES), expiresAtMs: count })
  .meta({ id: 'Me' });

const auditEntry = z
  .object({
    auditId: text,
    at: time,
    actor: text,
    action: text,
    subject: text,
    before: z.unknown(),
    after: z.unknown(),
  })
  .meta({ id: 'AuditEntry' });
export const auditPage = z.object({ entries: z.array(auditEntry), next: text.nullable() });

export const revocation = z
  .object({
    number: count,
    at: time,
    actor: text,
    userId: text.optional(),
    issuedBefore: time.optional(),
    tokenId: text.optional(),
  })
  .meta({
    id: 'Revocation',
    description: 'revokes all tokens that a user had before a time, or one token by its `jti`',
  });
export const revocationPage = z.object({ revocations: z.array(revocation), next: count.nullable() });

export type Me = BodyOf<typeof me>;
export type AuditEntry = BodyOf<typeof auditEntry>;
export type Revocation = BodyOf<typeof revocation>;

import { z } from 'zod';
import { revocation, revocationPage, type Revocation } from '../../contract/access.js';
import { isoTime, limit, nextOf, queryTime, queryWhole, tokenId, userId } from '../../contract/fields.js';
import { fieldError } from '../../core/field-errors.js';
import type { Revocation as StoredRevocation, RevocationRepository } from '../../core/ports/revocations.js';
import { json } from '../../http/answer.js';
import { badFields, jsonBody, operatorRoute, type Route, type RouteServices } from '../../http/route.js';

export interface RevocationServices {
  /** @throws OperationalError mysql */
  readonly revocations: RevocationRepository;
}

const NUMBER_MAX = 999_999_999;

const listRevocations = operatorRoute({
  method: 'get',
  path: '/admin/v1/revocations',
  operationId: 'listRevocations',
  summary: 'Lists revoked tokens, newest first. Pass `next` as `before` to get the next page.',
  access: 'viewer',
  query: z.strictObject({ before: queryWhole(1, NUMBER_MAX).optional(), limit }),
  answers: { 200: { description: 'a page', schema: revocationPage } },
  async handle({ query: { before, limit: max } }, { revocations }: RevocationServices) {
    const found = await revocations.newest(max, before);
    return json(200, 'found', { revocations: found.map(revocationBody), next: nextOf(found, max, 'number') });
  },
});

const newRevocation = z
  .strictObject({
    userId: userId.optional(),
    issuedBefore: queryTime.optional().meta({ description: 'only with `userId`; defaults to now' }),
    tokenId: tokenId.optional(),
  })
  .refine(({ userId, tokenId }) => (userId === undefined) !== (tokenId === undefined), {
    error: 'must name either userId or tokenId',
  })
  .refine(({ tokenId, issuedBefore }) => tokenId === undefined || issuedBefore === undefined, {
    error: 'needs userId',
    path: ['issuedBefore'],
  })
  .meta({ id: 'NewRevocation' });

const addRevocation = operatorRoute({
  method: 'post',
  path: '/admin/v1/revocations',
  operationId: 'addRevocation',
  summary:
    'Revokes all tokens that a user got before a time, or one token by its `jti`. Takes effect everywhere within a second, for' +
    ' admins too. Safe to repeat.',
  access: 'admin',
  body: jsonBody(newRevocation),
  answers: { 201: { description: 'revoked', schema: revocation } },
  async handle(
    { body: { userId, issuedBefore, tokenId }, userId: actor },
    { revocations, clock }: RouteServices & RevocationServices,
  ) {
    const nowMs = clock.nowMs();
    const issuedBeforeMs = issuedBefore ?? nowMs;
    if (issuedBeforeMs > nowMs) return badFields([fieldError('issuedBefore', NOT_YET)]);
    const about = tokenId === undefined ? { userId: userId as string, issuedBeforeMs } : { tokenId };
    return json(201, 'revoked', revocationBody(await revocations.add(about, actor)));
  },
});

export const revocationRoutes: readonly Route<RevocationServices>[] = [listRevocations, addRevocation];

/** To deny a user access in the future, use the admission rules rather than a revocation. */
export const NOT_YET = 'must not be in the future. To keep a user out, deny the user in the rules (lists.users.deny)';

export const revocationBody = ({ number, atMs, actor, ...about }: StoredRevocation): Revocation => ({
  number,
  at: isoTime(atMs),
  actor,
  ...('tokenId' in about ? about : { userId: about.userId, issuedBefore: isoTime(about.issuedBeforeMs) }),
});

import { z } from 'zod';
import { isoTime, limit, nextOf, queryWord, rowId, saleId } from '../../contract/fields.js';
import { witnessFinding, witnessPage, type WitnessFinding as Body } from '../../contract/witness.js';
import { WITNESS_STATES } from '../../core/ports/witness.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { json, problem } from '../../http/answer.js';
import { operatorRoute, type Route } from '../../http/route.js';
import type { WitnessFinding, WitnessStore } from '../../mysql/witness-store.js';

/** The service that the routes need. */
export interface FindingServices {
  readonly witness: Pick<WitnessStore, 'list' | 'close'>;
}

const listFindings = operatorRoute({
  method: 'get',
  path: '/admin/v1/witness/findings',
  operationId: 'listWitnessFindings',
  summary:
    'Lists changes of the books that no program makes, oldest first. Pass `next` as `after` to get the next page. Empty while `WITNESS` is `off`.',
  access: 'viewer',
  query: z.strictObject({
    state: queryWord(WITNESS_STATES).optional(),
    sale: saleId.optional(),
    after: rowId.optional(),
    limit,
  }),
  answers: { 200: { description: 'a page', schema: witnessPage } },
  problems: [],
  async handle({ query: { state, sale, after, limit: max } }, { witness }: FindingServices) {
    const filter = withoutUndefined({ state, saleId: sale });
    const found = await witness.list(filter, { max, ...withoutUndefined({ after }) });
    return json(200, 'found', { findings: found.map(findingBody), next: nextOf(found, max, 'findingId') });
  },
});

const closeFinding = operatorRoute({
  method: 'post',
  path: '/admin/v1/witness/findings/{findingId}/close',
  operationId: 'closeWitnessFinding',
  summary: 'Closes a finding that you have explained or repaired. Safe to repeat.',
  access: 'admin',
  params: z.object({ findingId: rowId }),
  answers: { 200: { description: 'the closed finding', schema: witnessFinding } },
  problems: ['finding_not_found'],
  async handle({ params: { findingId }, userId: actor }, { witness }: FindingServices) {
    const closed = await witness.close(findingId, actor);
    return closed === null ? problem('finding_not_found') : json(200, 'closed', findingBody(closed));
  },
});

/** Formats a finding for programs: times in ISO 8601. */
export const findingBody = ({ committedAtMs, ...found }: WitnessFinding): Body => ({
  ...found,
  committedAt: isoTime(committedAtMs),
});

export const findingRoutes: readonly Route<FindingServices>[] = [listFindings, closeFinding];

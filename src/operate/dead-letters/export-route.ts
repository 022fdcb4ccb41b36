import { filterObject, queryWhole, queryWord } from '../../contract/fields.js';
import { DEAD_LETTER_STATES, type DeadLetterFilter } from '../../core/ports/dead-letters.js';
import { withoutUndefined } from '../../core/without-undefined.js';
import { EXPORT_FORMATS, EXPORT_MAX, exportLine, headingOf, type ExportFormat } from '../../http/export-lines.js';
import { defineRoute, type RouteServices } from '../../http/route.js';
import { EXPORT_ANSWER, sendExport } from '../../http/send-export.js';
import { deadLetterBody, deadLetterFilter, filterOf } from './routes.js';

const COLUMNS = [
  'deadLetterId',
  'parkedAt',
  'state',
  'reason',
  'detail',
  'group',
  'originTopic',
  'saleId',
  'batchId',
  'messageId',
  'attempts',
  'replays',
  'replayStartedAt',
  'note',
  'body',
] as const;

/** Few per read, because bodies may be long. */
const PAGE = 20;

/** Yields pages of dead letters with their bodies, oldest first. Reads nothing ahead. @throws OperationalError mysql */
async function* deadLetterPages(
  deadLetters: RouteServices['deadLetters'],
  filter: DeadLetterFilter,
  { format, limit }: { readonly format: ExportFormat; readonly limit: number },
): AsyncGenerator<string> {
  let text = headingOf(COLUMNS, format);
  let lines = 0;
  for await (const { deadLetterId } of deadLetters.matching(filter, limit)) {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter !== null) text += exportLine({ ...deadLetterBody(deadLetter) }, COLUMNS, format);
    if (++lines % PAGE > 0) continue;
    yield text;
    text = '';
  }
  yield text;
}

/** Exports the same data as `seckill dlq export`, which prints JSON lines. */
export const exportDeadLetters = defineRoute({
  method: 'get',
  path: '/admin/v1/dead-letters/export',
  label: 'admin',
  operationId: 'exportDeadLetters',
  summary: 'Exports dead letters with their bodies, oldest first. A response that breaks off is incomplete.',
  access: 'viewer',
  endpoint: null,
  query: filterObject({
    ...deadLetterFilter,
    state: queryWord(DEAD_LETTER_STATES).optional(),
    limit: queryWhole(1, EXPORT_MAX).default(EXPORT_MAX),
    format: queryWord(EXPORT_FORMATS).default('csv'),
  }),
  answers: { 200: EXPORT_ANSWER },
  problems: ['overloaded'],
  async handle(call, services) {
    const { state, limit, format, ...names } = call.query;
    const filter = { ...filterOf(names), ...withoutUndefined({ state }) };
    return sendExport(call, 'dead-letters', deadLetterPages(services.deadLetters, filter, { format, limit }), services);
  },
});

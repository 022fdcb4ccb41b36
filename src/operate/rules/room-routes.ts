import { saleParams } from '../../contract/fields.js';
import { rateSet, room as roomBody, roomRate, roomSteered, steerRoom as steerBody } from '../../contract/rules.js';
import { assertNever } from '../../core/errors.js';
import { json, problem } from '../../http/answer.js';
import { jsonBody, operatorRoute, type Route } from '../../http/route.js';
import { reasonErrors } from './routes.js';
import type { RuleServices } from './services.js';

const readRoom = operatorRoute({
  method: 'get',
  path: '/admin/v1/sales/{saleId}/waiting-room',
  operationId: 'readWaitingRoom',
  summary:
    'Returns how many buyers wait for a sale, how many were admitted, the rate, and how long the last buyer waits.',
  access: 'viewer',
  params: saleParams,
  answers: { 200: { description: 'the waiting room', schema: roomBody } },
  problems: ['rules_unfit'],
  async handle({ params: { saleId } }, { room }: RuleServices) {
    const found = await room.show(saleId);
    if (found.outcome === 'rules_unfit') return problem(found.outcome, { errors: reasonErrors(found.reasons) });
    const { outcome, ...body } = found;
    return json(200, outcome, body);
  },
});

const setRate = operatorRoute({
  method: 'put',
  path: '/admin/v1/waiting-rooms/rate',
  operationId: 'setWaitingRoomRate',
  summary: 'Sets how many buyers per second the waiting rooms admit. A change is a new version of the rules. 0 pauses.',
  access: 'operator',
  body: jsonBody(roomRate),
  answers: {
    200: {
      description:
        'set; `seenAtOnce` is false if Redis did not answer: each process then reads it from MySQL within ten seconds',
      schema: rateSet,
    },
  },
  problems: ['version_conflict', 'rules_unfit'],
  async handle({ body: { admitPerSecond }, userId }, { room }: RuleServices) {
    const answer = await room.setRate(admitPerSecond, userId);
    switch (answer.outcome) {
      case 'rate_set': {
        const { unchanged: _, ...set } = answer;
        return json(200, answer.outcome, { ...set, admitPerSecond });
      }
      case 'version_conflict':
        return problem(answer.outcome, { detail: 'Someone else changed the rules at the same time. Try again.' });
      case 'rules_unfit':
        return problem(answer.outcome, { errors: reasonErrors(answer.reasons) });
      default:
        return assertNever(answer);
    }
  },
});

const steerRoom = operatorRoute({
  method: 'post',
  path: '/admin/v1/sales/{saleId}/waiting-room',
  operationId: 'steerWaitingRoom',
  summary: 'Admits the next buyers of a waiting room at once, in addition to its rate, or ends all places.',
  access: 'operator',
  params: saleParams,
  body: jsonBody(steerBody),
  answers: { 200: { description: 'done, for this number of buyers', schema: roomSteered } },
  problems: ['not_found', 'not_open'],
  async handle({ params: { saleId }, body, userId }, { room }: RuleServices) {
    const admit = body.action === 'empty' ? 'all_out' : body.buyers;
    const { word, buyers } = await room.steer(saleId, admit, userId);
    switch (word) {
      case 'no_room':
        return problem('not_found', { detail: 'No buyer has joined a waiting room of this sale.' });
      case 'not_open':
        return problem('not_open', { detail: 'The sale has not opened. Its waiting room admits no buyer yet.' });
      case 'admitted':
      case 'emptied':
        return json(200, word, { outcome: word, buyers });
      default:
        return assertNever(word);
    }
  },
});

export const roomRoutes: readonly Route<RuleServices>[] = [readRoom, setRate, steerRoom];

import { assertNever } from '../../core/errors.js';
import type { DiscardAnswer } from '../../recovery/dead-letters/discard-dead-letter.js';
import type { ReplayAnswer } from '../../recovery/dead-letters/replay-dead-letter.js';
import { deadLetterBody, summaryBody } from '../dead-letter-bodies.js';
import type { HttpServices } from '../services.js';
import { asAdmin, type AdminHandler } from './admin-sales.js';
import { isDeadLetterId, readDeadLetterQuery } from './dead-letter-query.js';
import { wrongFields } from './query-fields.js';
import type { Exchange, Handler, Router } from './router.js';

/** How long a replay is followed before the answer says that it is not finished; many are a task for `seckill dlq`. */
const REPLAY_WAIT_MS = 10_000;

/** Dead letters, one by one. */
export function mountDeadLetters(router: Router, services: HttpServices): void {
  const { deadLetters } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/dead-letters', {
    get: admin(async ({ req, res, replies }) => {
      const read = readDeadLetterQuery({ ...req.query });
      if (!('page' in read)) {
        return replies.problem(req, res, 'bad_request', { detail: wrongFields(read), errors: read });
      }
      const found = await deadLetters.list(read.filter, read.page);
      const next = found.length < read.page.max ? null : (found.at(-1)?.deadLetterId ?? null);
      replies.json(req, res, 200, 'found', { deadLetters: found.map(summaryBody), next });
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}', {
    get: admin(async (exchange) => {
      const { req, res, replies } = exchange;
      const deadLetterId = deadLetterIdIn(exchange);
      if (deadLetterId === null) return;
      const deadLetter = await deadLetters.find(deadLetterId);
      if (deadLetter === null) return replies.problem(req, res, 'dead_letter_not_found');
      replies.json(req, res, 200, 'found', deadLetterBody(deadLetter));
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}/replay', {
    post: admin(async (exchange, { userId: actor }) => {
      const deadLetterId = deadLetterIdIn(exchange);
      if (deadLetterId === null) return;
      const answer = await deadLetters.replay(deadLetterId, { actor, waitMs: REPLAY_WAIT_MS });
      await answerMove(exchange, deadLetterId, answer, 'replayed', services);
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}/discard', {
    post: admin(async (exchange, { userId: actor }) => {
      const deadLetterId = deadLetterIdIn(exchange);
      if (deadLetterId === null) return;
      await answerMove(exchange, deadLetterId, await deadLetters.discard(deadLetterId, actor), 'discarded', services);
    }),
  });
}

function deadLetterIdIn({ req, res, replies, param }: Exchange): string | null {
  const deadLetterId = param('letterId');
  if (isDeadLetterId(deadLetterId)) return deadLetterId;
  replies.problem(req, res, 'bad_request', { detail: 'The number of the letter must be a whole number.' });
  return null;
}

async function answerMove(
  { req, res, replies }: Exchange,
  deadLetterId: string,
  answer: ReplayAnswer | DiscardAnswer,
  asked: 'replayed' | 'discarded',
  { deadLetters }: HttpServices,
): Promise<void> {
  const show = async (status: 200 | 202): Promise<void> => {
    const deadLetter = await deadLetters.find(deadLetterId);
    if (deadLetter === null) return replies.problem(req, res, 'dead_letter_not_found');
    replies.json(req, res, status, answer.outcome, { outcome: answer.outcome, deadLetter: deadLetterBody(deadLetter) });
  };
  switch (answer.outcome) {
    case 'replayed':
    case 'already_recorded':
    case 'discarded':
      return show(200);
    case 'unfinished':
      return show(202);
    case 'already_closed':
      if (answer.state === asked) return show(200); // a repeat
      return replies.problem(req, res, 'wrong_state', { detail: `The letter is ${answer.state}, for good.` });
    case 'unreadable':
    case 'not_held':
      return replies.problem(req, res, 'not_replayable', { detail: `This letter: ${answer.note}.` });
    case 'contended':
      return replies.problem(req, res, 'unavailable', { detail: 'Others write the same rows. Try again.' });
    case 'not_found':
      return replies.problem(req, res, 'dead_letter_not_found');
    default:
      return assertNever(answer);
  }
}

import { assertNever } from '../../core/errors.js';
import type { DiscardAnswer } from '../../recovery/dead-letters/discard-letter.js';
import type { ReplayAnswer } from '../../recovery/dead-letters/replay-answer.js';
import { letterBody, summaryBody } from '../dead-letter-bodies.js';
import type { HttpServices } from '../services.js';
import { asAdmin, type AdminHandler } from './admin-sales.js';
import { isLetterId, readDeadLetterQuery } from './dead-letter-query.js';
import { wrongFields } from './query-fields.js';
import type { Exchange, Handler, Router } from './router.js';

/** How long a replay is followed before the answer says that it is not finished; many are a task for `seckill dlq`. */
const REPLAY_WAIT_MS = 10_000;

/** Dead letters, one by one. */
export function mountDeadLetters(router: Router, services: HttpServices): void {
  const { letters } = services;
  const admin = (handler: AdminHandler): Handler => asAdmin(services, handler);

  router.mount('admin', '/admin/v1/dead-letters', {
    get: admin(async ({ req, res, replies }) => {
      const read = readDeadLetterQuery({ ...req.query });
      if (!('page' in read)) {
        return replies.problem(req, res, 'bad_request', { detail: wrongFields(read), errors: read });
      }
      const found = await letters.list(read.filter, read.page);
      const next = found.length < read.page.max ? null : (found.at(-1)?.letterId ?? null);
      replies.json(req, res, 200, 'found', { letters: found.map(summaryBody), next });
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}', {
    get: admin(async (exchange) => {
      const { req, res, replies } = exchange;
      const letterId = letterIdIn(exchange);
      if (letterId === null) return;
      const letter = await letters.find(letterId);
      if (letter === null) return replies.problem(req, res, 'dead_letter_not_found');
      replies.json(req, res, 200, 'found', letterBody(letter));
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}/replay', {
    post: admin(async (exchange, { userId: actor }) => {
      const letterId = letterIdIn(exchange);
      if (letterId === null) return;
      const answer = await letters.replay(letterId, { actor, waitMs: REPLAY_WAIT_MS });
      await answerMove(exchange, letterId, answer, 'replayed', services);
    }),
  });

  router.mount('admin', '/admin/v1/dead-letters/{letterId}/discard', {
    post: admin(async (exchange, { userId: actor }) => {
      const letterId = letterIdIn(exchange);
      if (letterId === null) return;
      await answerMove(exchange, letterId, await letters.discard(letterId, actor), 'discarded', services);
    }),
  });
}

function letterIdIn({ req, res, replies, param }: Exchange): string | null {
  const letterId = param('letterId');
  if (isLetterId(letterId)) return letterId;
  replies.problem(req, res, 'bad_request', { detail: 'The number of the letter must be a whole number.' });
  return null;
}

async function answerMove(
  { req, res, replies }: Exchange,
  letterId: string,
  answer: ReplayAnswer | DiscardAnswer,
  asked: 'replayed' | 'discarded',
  { letters }: HttpServices,
): Promise<void> {
  const show = async (status: 200 | 202): Promise<void> => {
    const letter = await letters.find(letterId);
    if (letter === null) return replies.problem(req, res, 'dead_letter_not_found');
    replies.json(req, res, status, answer.outcome, { outcome: answer.outcome, letter: letterBody(letter) });
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

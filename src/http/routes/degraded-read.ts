import { assertNever } from '../../core/errors.js';
import type { Body, ReadEndpoint, Served, ReadRequest } from '../../admission/degrade/degraded-reads.js';
import type { ProblemCode } from '../problem.js';
import type { HttpServices } from '../services.js';
import type { Exchange } from './router.js';

/** One question of a buyer that changes nothing. */
export interface Read extends ReadRequest {
  readonly endpoint: ReadEndpoint;
  /** The user, or the client address of somebody who is not signed in; asked for only if it matters. */
  readonly who: () => string;
  /** What the counter is labelled with when the answer is the full one. */
  readonly word: (body: Body) => string;
  /** Why there is nothing; asked after the source has said so. */
  readonly missing: () => ProblemCode;
  /** For problems; absent where the question has none. */
  readonly requestId?: string;
  readonly headers?: string[];
}

/**
 * Answers as much as the degradation grants: all, while it is off.
 * @throws OperationalError of the source, where nothing may stand in for it
 */
export async function answerRead(exchange: Exchange, read: Read, services: HttpServices): Promise<void> {
  const { req, res, replies } = exchange;
  const served = await serve(read, services);
  const parts = { requestId: read.requestId ?? null };
  switch (served.served) {
    case 'full':
      if (served.body === null) return replies.problem(req, res, read.missing(), parts);
      return replies.json(req, res, 200, read.word(served.body), served.body, read.headers);
    case 'stale':
    case 'essential':
    case 'empty':
      return replies.json(req, res, 200, served.served, served.body);
    case 'no_content':
      return replies.empty(req, res, 204, served.served);
    case 'degraded':
      return replies.problem(req, res, served.served, parts);
    default:
      return assertNever(served);
  }
}

async function serve(read: Read, { degrade, reads }: HttpServices): Promise<Served> {
  if (!degrade.isOn) return { served: 'full', body: await read.source() };
  return reads[read.endpoint].serve(degrade.rulingOf(read.endpoint, read.who()), read);
}

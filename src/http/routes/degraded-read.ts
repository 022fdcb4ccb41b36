import type { ProblemCode } from '../../contract/problem.js';
import { degradedSchema } from '../../contract/purchases.js';
import { assertNever } from '../../core/errors.js';
import type { Body, ReadEndpoint, ReadRequest, Served } from '../../admission/degrade/degraded-reads.js';
import { z } from 'zod';
import { json, noContent, problem, type Answer } from '../answer.js';
import type { AnswerSpec, RouteServices } from '../route.js';

/** A read by a buyer, full or degraded. */
interface Read<C extends ProblemCode> extends ReadRequest {
  readonly endpoint: ReadEndpoint;
  /** Returns the user, or the client address of an anonymous caller. Called only if the result matters. */
  readonly caller: () => string;
  /** Returns the label under which the full answer is counted. */
  readonly word: (body: Body) => string;
  /** Returns the problem to answer if the source has no data. */
  readonly missing: () => C;
  /** The request id for problems. Null if the request has none. */
  readonly requestId: string | null;
  /** Builds the full answer. Default: JSON that no cache keeps. */
  readonly whole?: (body: Body) => Answer<200 | 304>;
}

/** Describes the whole answer, or the reduced answer under overload. */
export const readable = (description: string, schema: z.ZodType): AnswerSpec => ({
  description: `${description}; a reduced version, marked by \`degraded\`, under overload`,
  schema: z.union([degradedSchema, schema]),
});

/**
 * Answers as fully as the current degradation allows. While degradation is off, the answer is complete.
 * @throws OperationalError of the source, if no degraded answer is allowed
 */
export async function answerRead<C extends ProblemCode>(
  read: Read<C>,
  services: RouteServices,
): Promise<Answer<200 | C | 'degraded'>> {
  const served = await serve(read, services);
  const { requestId } = read;
  switch (served.served) {
    case 'full':
      if (served.body === null) return problem(read.missing(), { requestId });
      if (read.whole) return read.whole(served.body) as Answer<200>; // 304 only from the sale page, which documents it
      return json(200, read.word(served.body), served.body);
    case 'stale':
    case 'essential':
    case 'empty':
      return json(200, served.served, served.body);
    case 'no_content':
      return noContent(served.served) as Answer<never>; // only the sale page gets here, and its document lists a 204
    case 'degraded':
      return problem(served.served, { requestId });
    default:
      return assertNever(served);
  }
}

async function serve(read: Read<ProblemCode>, { degrade, reads }: RouteServices): Promise<Served> {
  if (!degrade.isOn) return { served: 'full', body: await read.source() };
  return reads[read.endpoint].serve(degrade.rulingOf(read.endpoint, read.caller()), read);
}

import type { ProblemCode } from '../../contract/problem.js';
import { degradedSchema } from '../../contract/purchases.js';
import { assertNever } from '../../core/errors.js';
import type { Body, ReadEndpoint, ReadRequest, Served } from '../../admission/degrade/degraded-reads.js';
import { z } from 'zod';
import { json, noContent, problem, type Answer } from '../answer.js';
import type { AnswerSpec, RouteServices } from '../route.js';

/** One read of a buyer, full or degraded. */
interface Read<C extends ProblemCode> extends ReadRequest {
  readonly endpoint: ReadEndpoint;
  /** The user, or the client address of an anonymous caller; computed only if it matters. */
  readonly caller: () => string;
  /** The word that the full answer is counted under. */
  readonly word: (body: Body) => string;
  /** The answer when the source has nothing. */
  readonly missing: () => C;
  /** For problems; null where the question has none. */
  readonly requestId: string | null;
  readonly headers?: readonly string[];
}

/** The whole answer, or as much of it as is given while there is too much to do. */
export const readable = (description: string, schema: z.ZodType): AnswerSpec => ({
  description: `${description}; a reduced version, marked by \`degraded\`, under overload`,
  schema: z.union([degradedSchema, schema]),
});

/**
 * Answers as much as the degradation grants: all, while it is off.
 * @throws OperationalError of the source, where no degraded answer is allowed
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
      return json(200, read.word(served.body), served.body, read.headers);
    case 'stale':
    case 'essential':
    case 'empty':
      return json(200, served.served, served.body);
    case 'no_content':
      return noContent(served.served) as Answer<never>; // only of the sale page, whose document has a 204
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

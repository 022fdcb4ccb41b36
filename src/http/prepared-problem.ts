import { problemHeaders, problemOf, PROBLEMS, type ProblemCode } from './problem.js';
import type { Answer } from './respond.js';

/** Stands for the request id while a body is being prepared; no text of the table holds it. */
const MARK = '@request@';

/**
 * A problem whose only moving part is the request id. Ids are ASCII and need no escaping, so the body is two strings
 * around it, and there is one list of headers per length.
 */
export class PreparedProblem {
  readonly #status: number;
  readonly #before: string;
  readonly #after: string;
  readonly #headers: readonly string[];
  readonly #byLength: string[][] = [];

  /** @param detail ASCII; what the table says when left out */
  constructor(code: ProblemCode, detail?: string) {
    const [before = '', after = ''] = JSON.stringify(
      problemOf(code, { requestId: MARK, ...(detail === undefined ? {} : { detail }) }),
    ).split(MARK);
    this.#status = PROBLEMS[code].status;
    this.#before = before;
    this.#after = after;
    this.#headers = problemHeaders(code);
  }

  answer(requestId: string): Answer {
    const body = this.#before + requestId + this.#after;
    const headers = (this.#byLength[requestId.length] ??= [...this.#headers, 'Content-Length', String(body.length)]);
    return { status: this.#status, headers, body, encoding: 'latin1' };
  }
}

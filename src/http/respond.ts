import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpMetrics, HttpRoute } from '../core/ports/http-metrics.js';
import { hasLongBody } from './body.js';
import { NOSNIFF, problemHeaders, problemOf, PROBLEMS, type ProblemCode, type ProblemParts } from './problem.js';

/** How long a connection that is to be closed stays open for what the client is still sending. */
const LINGER_MS = 1000;

/** What all answers of one server share. */
export interface Lifecycle {
  /** From the first moment of a drain each answer closes its connection. */
  draining: boolean;
  /** Long polls under way; a drain aborts them, so that they answer at once. */
  readonly polls: Set<AbortController>;
}

export const newLifecycle = (): Lifecycle => ({ draining: false, polls: new Set() });

/** Counters of one route, each bound when its code is first answered. */
export class AnswerCounter {
  readonly #metrics: HttpMetrics;
  readonly #route: HttpRoute;
  readonly #bound = new Map<string, () => void>();

  constructor(metrics: HttpMetrics, route: HttpRoute) {
    this.#metrics = metrics;
    this.#route = route;
  }

  count(code: string): void {
    let add = this.#bound.get(code);
    if (!add) {
      add = this.#metrics.answered(this.#route, code);
      this.#bound.set(code, add);
    }
    add();
  }
}

/** One whole answer: `headers` is a flat list of names and values that includes Content-Length. */
export interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  /** `latin1` skips the UTF-8 encoder; only for bodies that are ASCII by construction. */
  readonly encoding: 'latin1' | 'utf8';
}

/** Writes one answer. A client that has gone is no error: the answer is dropped. */
export function send(req: IncomingMessage, res: ServerResponse, answer: Answer, lifecycle: Lifecycle): void {
  if (res.destroyed || res.headersSent) return;
  const leavesBody = !req.complete && hasLongBody(req); // not worth skipping for the next request on the connection
  if (leavesBody || lifecycle.draining) res.shouldKeepAlive = false;
  res.writeHead(answer.status, answer.headers as string[]);
  if (leavesBody) endAfterBody(req, res, answer);
  else res.end(answer.body, answer.encoding);
}

/**
 * Answers that are known at once leave together, after the requests that this turn of the event loop has read. Each
 * write to a client that sleeps wakes it, which costs more than all the rest of a refusal; one turn wakes it once.
 */
export class AnswersTogether {
  readonly #lifecycle: Lifecycle;
  #ready: [req: IncomingMessage, res: ServerResponse, answer: Answer][] = [];

  constructor(lifecycle: Lifecycle) {
    this.#lifecycle = lifecycle;
  }

  send(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
    if (this.#ready.push([req, res, answer]) === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const ready = this.#ready;
    this.#ready = [];
    for (const [req, res, answer] of ready) send(req, res, answer, this.#lifecycle);
  }
}

/**
 * Closing a socket with unread input makes the kernel send a reset, which can overtake the answer. So the answer goes
 * out, the rest of the body is thrown away for a moment, and then the connection is closed.
 */
function endAfterBody(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  const end = (): void => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  res.write(answer.body, answer.encoding);
  req.once('end', end).once('close', end).resume();
}

export function problemAnswer(code: ProblemCode, parts: ProblemParts = {}, extra: readonly string[] = []): Answer {
  const body = JSON.stringify(problemOf(code, parts));
  const length = String(Buffer.byteLength(body));
  return {
    status: PROBLEMS[code].status,
    headers: [...problemHeaders(code, parts), 'Content-Length', length, ...extra],
    body,
    encoding: 'utf8',
  };
}

/** The answers of one route, counted by their word. */
export class Replies {
  readonly #lifecycle: Lifecycle;
  readonly #counter: AnswerCounter;

  constructor(route: HttpRoute, shared: { readonly metrics: HttpMetrics; readonly lifecycle: Lifecycle }) {
    this.#lifecycle = shared.lifecycle;
    this.#counter = new AnswerCounter(shared.metrics, route);
  }

  /** @param word what the counter is labelled with: a status or outcome word */
  json(req: IncomingMessage, res: ServerResponse, status: number, word: string, body: object, extra?: string[]): void {
    this.text(req, res, status, word, JSON.stringify(body), 'application/json', extra);
  }

  text(
    ...[req, res, status, word, body, type, extra = ['Cache-Control', 'no-store']]: [
      ...[req: IncomingMessage, res: ServerResponse, status: number, word: string],
      ...[body: string, type: string, extra?: string[]],
    ]
  ): void {
    this.#counter.count(word);
    const length = String(Buffer.byteLength(body));
    const headers = ['Content-Type', type, ...NOSNIFF, 'Content-Length', length, ...extra];
    send(req, res, { status, headers, body, encoding: 'utf8' }, this.#lifecycle);
  }

  /** An answer without a body, of a status that has none. */
  empty(req: IncomingMessage, res: ServerResponse, status: 204, word: string): void {
    this.#counter.count(word);
    const headers = ['Cache-Control', 'no-store', ...NOSNIFF];
    send(req, res, { status, headers, body: '', encoding: 'latin1' }, this.#lifecycle);
  }

  /** For an answer that is written elsewhere. */
  count(word: string): void {
    this.#counter.count(word);
  }

  problem(
    ...[req, res, code, parts, extra]: [
      ...[req: IncomingMessage, res: ServerResponse, code: ProblemCode],
      ...[parts?: ProblemParts, extra?: readonly string[]],
    ]
  ): void {
    this.#counter.count(code);
    send(req, res, problemAnswer(code, parts, extra), this.#lifecycle);
  }
}

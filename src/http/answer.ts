import type { IncomingMessage, ServerResponse } from 'node:http';
import { PROBLEMS, type ProblemCode } from '../contract/problem.js';
import { newTraceId, readTraceparent, type TraceParent } from '../core/trace-context.js';
import { hasLongBody } from './body.js';
import type { AnswerClass, HttpMetrics, HttpRoute } from './metrics.js';
import { NOSNIFF, problemHeaders, problemOf, type ProblemParts } from './problem.js';

/** How long a connection that is to be closed stays open for what the client is still sending. */
const LINGER_MS = 1000;
const JSON_TYPE = 'application/json';
const NO_STORE = ['Cache-Control', 'no-store'];

/** Of the type only: which answers of its document a route gives. */
declare const KIND: unique symbol;

/** One whole answer. @typeParam K its status, or the code of its problem */
export interface Answer<K extends number | ProblemCode = number | ProblemCode> {
  readonly [KIND]?: K;
  readonly status: number;
  /** What it is counted as: an outcome, a status word or a problem code; never a user, a sale or a request. */
  readonly word: string;
  /** A flat list of names and values that includes Content-Length. */
  readonly headers: readonly string[];
  readonly body: string;
  /** `latin1` skips the UTF-8 encoder; only for bodies that are ASCII by construction. */
  readonly encoding: 'latin1' | 'utf8';
}

/** @param word what it is counted as */
export const json = <S extends number>(
  status: S,
  word: string,
  body: object,
  headers: readonly string[] = NO_STORE,
): Answer<S> => text(status, word, JSON.stringify(body), JSON_TYPE, headers);

export const text = <S extends number>(
  status: S,
  word: string,
  body: string,
  type: string,
  headers: readonly string[] = NO_STORE,
): Answer<S> => ({
  status,
  word,
  headers: ['Content-Type', type, ...NOSNIFF, 'Content-Length', String(Buffer.byteLength(body)), ...headers],
  body,
  encoding: 'utf8',
});

export const noContent = (word: string): Answer<204> => ({
  status: 204,
  word,
  headers: [...NO_STORE, ...NOSNIFF],
  body: '',
  encoding: 'latin1',
});

export function problem<C extends ProblemCode>(
  code: C,
  parts: ProblemParts = {},
  headers: readonly string[] = [],
): Answer<C> {
  const body = JSON.stringify(problemOf(code, parts));
  const length = String(Buffer.byteLength(body));
  return {
    status: PROBLEMS[code].status,
    word: code,
    headers: [...problemHeaders(code, parts), 'Content-Length', length, ...headers],
    body,
    encoding: 'utf8',
  };
}

/** Stands for the request id while a body is being prepared; no text of the table holds it. */
const MARK = '@request@';

/**
 * A problem whose only moving part is the request id, for what a flood of requests gets again and again. Ids are ASCII
 * and need no escaping, so the body is two strings around it, and there is one list of headers per length.
 */
export class PreparedProblem<C extends ProblemCode> {
  readonly #code: C;
  readonly #parts: ProblemParts;
  readonly #before: string;
  readonly #after: string;
  readonly #headers: readonly string[];
  readonly #byLength: string[][] = [];

  /** @param parts ASCII; what the table says where left out */
  constructor(code: C, parts: Omit<ProblemParts, 'requestId'> = {}) {
    const [before = '', after = ''] = JSON.stringify(problemOf(code, { ...parts, requestId: MARK })).split(MARK);
    this.#code = code;
    this.#parts = parts;
    this.#before = before;
    this.#after = after;
    this.#headers = problemHeaders(code, parts);
  }

  answer(requestId: string | null): Answer<C> {
    if (requestId === null) return problem(this.#code, this.#parts);
    const body = this.#before + requestId + this.#after;
    const headers = (this.#byLength[requestId.length] ??= [...this.#headers, 'Content-Length', String(body.length)]);
    return { status: PROBLEMS[this.#code].status, word: this.#code, headers, body, encoding: 'latin1' };
  }
}

/** What all answers of one server share. */
export interface Lifecycle {
  /** From the first moment of a drain each answer closes its connection. */
  draining: boolean;
  /** Long polls and exports under way; a drain aborts them, so that they end at once. */
  readonly polls: Set<AbortController>;
}

/** An answer that takes long ends early when its client has gone, and when the server drains. It is a poll until it is sent. */
export function startPoll(res: ServerResponse, { polls, draining }: Lifecycle): AbortController {
  const poll = new AbortController();
  if (res.destroyed) {
    poll.abort(); // its `close` may be over
    return poll;
  }
  polls.add(poll);
  res.once('close', () => {
    polls.delete(poll);
    poll.abort();
  });
  if (draining) poll.abort();
  return poll;
}

export const newLifecycle = (): Lifecycle => ({ draining: false, polls: new Set() });

/** Names the trace of a request to whoever made it. */
export const TRACE_ID_HEADER = 'Trace-Id';

/** Where a request says that it belongs. Given twice the header arrives joined by a comma, and is not well-formed. */
export function parentOf({ headers }: Pick<IncomingMessage, 'headers'>): TraceParent | null {
  const { traceparent } = headers;
  return typeof traceparent === 'string' ? readTraceparent(traceparent) : null;
}

/** The trace id for an answer, made where neither the caller nor a batch has given one. */
export function traceIdFor(exchange: { traceId: string }): string {
  if (exchange.traceId === '') exchange.traceId = newTraceId();
  return exchange.traceId;
}

/** For an answer whose head is not written by `send`: called before it is. */
export function nameTrace(call: { readonly res: ServerResponse; traceId: string }): void {
  call.res.setHeader(TRACE_ID_HEADER, traceIdFor(call));
}

/** Writes one answer. A client that has gone is no error: the answer is dropped. */
export function send(
  req: IncomingMessage,
  res: ServerResponse,
  answer: Answer,
  traceId: string,
  lifecycle: Lifecycle,
): void {
  if (res.destroyed || res.headersSent) return;
  const leavesBody = !req.complete && hasLongBody(req); // not worth skipping for the next request on the connection
  if (leavesBody || lifecycle.draining) res.shouldKeepAlive = false;
  res.writeHead(answer.status, withTraceId(answer.headers, traceId));
  if (leavesBody) endAfterBody(req, res, answer);
  else res.end(answer.body, answer.encoding);
}

const head: string[] = [];

/** One list for all answers, since `writeHead` reads it before it returns. */
function withTraceId(headers: readonly string[], traceId: string): string[] {
  const { length } = headers;
  for (let i = 0; i < length; i++) head[i] = headers[i] as string;
  head[length] = TRACE_ID_HEADER;
  head[length + 1] = traceId;
  head.length = length + 2;
  return head;
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

/**
 * Answers that are known at once leave together, after the requests that this turn of the event loop has read. Each
 * write to a client that sleeps wakes it, which costs more than all the rest of a refusal; one turn wakes it once.
 */
export class AnswersTogether {
  readonly #lifecycle: Lifecycle;
  #ready: [req: IncomingMessage, res: ServerResponse, answer: Answer, traceId: string][] = [];

  constructor(lifecycle: Lifecycle) {
    this.#lifecycle = lifecycle;
  }

  send(req: IncomingMessage, res: ServerResponse, answer: Answer, traceId: string): void {
    if (this.#ready.push([req, res, answer, traceId]) === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const ready = this.#ready;
    this.#ready = [];
    for (const [req, res, answer, traceId] of ready) send(req, res, answer, traceId, this.#lifecycle);
  }
}

/** Counters of one route, each bound when its code is first answered. */
export class AnswerCounter {
  readonly route: HttpRoute;
  readonly #metrics: HttpMetrics;
  readonly #bound = new Map<string, () => void>();
  readonly #took = new Map<AnswerClass, (tookMs: number) => void>();

  constructor(metrics: HttpMetrics, route: HttpRoute) {
    this.#metrics = metrics;
    this.route = route;
  }

  /** @param tookMs since the request came */
  answered({ word, status }: Answer, tookMs: number): void {
    this.count(word);
    const answerClass = status < 400 ? 'ok' : status < 500 ? 'refused' : 'failed';
    let observe = this.#took.get(answerClass);
    if (!observe) {
      observe = this.#metrics.took(this.route, answerClass);
      this.#took.set(answerClass, observe);
    }
    observe(tookMs);
  }

  count(word: string): void {
    let add = this.#bound.get(word);
    if (!add) {
      add = this.#metrics.answered(this.route, word);
      this.#bound.set(word, add);
    }
    add();
  }
}

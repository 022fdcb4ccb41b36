import type { IncomingMessage, ServerResponse } from 'node:http';
import { PROBLEMS, type ProblemCode } from '../contract/problem.js';
import { newTraceId, readTraceparent, type TraceParent } from '../core/trace-context.js';
import { hasLongBody } from './body.js';
import type { AnswerClass, HttpMetrics, HttpRoute } from './metrics.js';
import { NOSNIFF, problemHeaders, problemOf, type ProblemParts } from './problem.js';

/** How long a connection stays open before it is closed, to receive what the client is still sending. */
const LINGER_MS = 1000;
const JSON_TYPE = 'application/json';
const NO_STORE = ['Cache-Control', 'no-store'];

/** Exists only in the type, where it says which documented answers a route gives. */
declare const KIND: unique symbol;

/**
 * A complete answer.
 * @typeParam K its status, or the code of its problem
 */
export interface Answer<K extends number | ProblemCode = number | ProblemCode> {
  readonly [KIND]?: K;
  readonly status: number;
  /** The label of the answer in metrics: an outcome, a status word or a problem code. Never an id. */
  readonly word: string;
  /** A flat list of names and values that includes Content-Length. */
  readonly headers: readonly string[];
  readonly body: string;
  /** `latin1` skips the UTF-8 encoder. Only for bodies that are always ASCII. */
  readonly encoding: 'latin1' | 'utf8';
}

/** @param word the label under which the answer is counted */
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

/** Placeholder for the request id while a body is being prepared. No text of the problem table contains it. */
const MARK = '@request@';

/**
 * A problem in which only the request id changes, for answers that a flood of requests repeats. Ids are ASCII and need
 * no escaping, so the body consists of two strings around the id. There is one list of headers per length of id.
 */
export class PreparedProblem<C extends ProblemCode> {
  readonly #code: C;
  readonly #parts: ProblemParts;
  readonly #before: string;
  readonly #after: string;
  readonly #headers: readonly string[];
  readonly #byLength: string[][] = [];

  /** @param parts ASCII; defaults to the problem table */
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

/** State that all answers of one server share. */
export interface Lifecycle {
  /** True from the start of a drain. Each answer then closes its connection. */
  draining: boolean;
  /** Long polls and exports in progress. A drain aborts them, so that they end at once. */
  readonly polls: Set<AbortController>;
}

/**
 * Registers a slow answer, which is ended early if its client disconnects or the server drains. The entry is removed
 * when the answer has been sent.
 */
export function startPoll(res: ServerResponse, { polls, draining }: Lifecycle): AbortController {
  const poll = new AbortController();
  if (res.destroyed) {
    poll.abort(); // its `close` event may have fired already
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

/** Tells the caller the trace id of the request. */
export const TRACE_ID_HEADER = 'Trace-Id';

/** Reads the trace parent of a request. Node joins repeated headers with a comma, which makes them malformed. */
export function parentOf({ headers }: IncomingMessage): TraceParent | null {
  const { traceparent } = headers;
  return typeof traceparent === 'string' ? readTraceparent(traceparent) : null;
}

/** Returns the trace id for an answer. Creates an id if neither the caller nor a batch supplied one. */
export function traceIdFor(exchange: { traceId: string }): string {
  if (exchange.traceId === '') exchange.traceId = newTraceId();
  return exchange.traceId;
}

/** Sets the trace id header of an answer whose head `send` does not write. Call it before the head is written. */
export function nameTrace(call: { readonly res: ServerResponse; traceId: string }): void {
  call.res.setHeader(TRACE_ID_HEADER, traceIdFor(call));
}

/** Writes an answer. If the client has disconnected, drops it without an error. */
export function send(
  req: IncomingMessage,
  res: ServerResponse,
  answer: Answer,
  traceId: string,
  lifecycle: Lifecycle,
): void {
  if (res.destroyed || res.headersSent) return;
  const leavesBody = !req.complete && hasLongBody(req); // not worth reading to keep the connection
  if (leavesBody || lifecycle.draining) res.shouldKeepAlive = false;
  res.writeHead(answer.status, withTraceId(answer.headers, traceId));
  if (leavesBody) endAfterBody(req, res, answer);
  else res.end(answer.body, answer.encoding);
}

const head: string[] = [];

/** Reuses one list for all answers, which is safe because `writeHead` reads the list before it returns. */
function withTraceId(headers: readonly string[], traceId: string): string[] {
  const { length } = headers;
  for (let i = 0; i < length; i++) head[i] = headers[i] as string;
  head[length] = TRACE_ID_HEADER;
  head[length + 1] = traceId;
  head.length = length + 2;
  return head;
}

/**
 * Sends the answer, discards the rest of the body for a moment, and then closes the connection. If a socket is closed
 * with unread input, the kernel sends a reset, which can overtake the answer.
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
 * Sends immediate answers together, once this turn of the event loop has read all its requests. Each write to a
 * sleeping client wakes it up, which costs more than the rest of a refusal. This way, one turn wakes each client only
 * once.
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

/** Counters of a route. Each code is bound when it is first answered. */
export class AnswerCounter {
  readonly route: HttpRoute;
  readonly #metrics: HttpMetrics;
  readonly #bound = new Map<string, () => void>();
  readonly #took = new Map<AnswerClass, (tookMs: number) => void>();

  constructor(metrics: HttpMetrics, route: HttpRoute) {
    this.#metrics = metrics;
    this.route = route;
  }

  /** @param tookMs time since the request arrived */
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

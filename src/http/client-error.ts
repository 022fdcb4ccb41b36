import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ProblemCode } from '../contract/problem.js';
import { newTraceId } from '../core/trace-context.js';
import { parentOf, problem, TRACE_ID_HEADER } from './answer.js';

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
};

/** Codes of Node's parser. Every other code means invalid syntax. */
const CODES: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** The latest response of a connection, kept on its socket. The response knows its request. */
const LAST = Symbol('last answer');
/** The number of requests in a row that arrived before the previous request was answered. */
const PIPELINED = Symbol('pipelined requests');
type Marked = Duplex & { [LAST]?: ServerResponse; [PIPELINED]?: number };

/**
 * Maximum number of requests that a client may send in a row without waiting for an answer. Node hands over all
 * requests of one packet in one turn, so thousands of them would keep every other client waiting. Browsers and proxies
 * send one request at a time.
 */
const PIPELINED_MAX = 16;

/**
 * Records the last request of a connection, at the cost of two fields per request. The answer to the last request that
 * a client may pipeline closes the connection.
 * @returns false if the client has sent too many requests at once; then drop the request without an answer
 */
export function noteExchange(req: IncomingMessage, res: ServerResponse): boolean {
  const socket = req.socket as Marked;
  const before = socket[PIPELINED] ?? 0;
  const pipelined = before >= PIPELINED_MAX || isAnswering(socket) ? before + 1 : 1;
  if (pipelined !== before) socket[PIPELINED] = pipelined;
  if (pipelined > PIPELINED_MAX) {
    req.socket.pause(); // input that is not read takes no memory
    return false;
  }
  if (pipelined === PIPELINED_MAX) res.shouldKeepAlive = false;
  socket[LAST] = res;
  return true;
}

/** Returns whether a request of this connection still waits for its answer, or for the rest of it. */
export function isAnswering(socket: Duplex): boolean {
  const last = (socket as Marked)[LAST];
  return last !== undefined && !last.writableFinished;
}

/**
 * Answers input that never became a request, because its syntax is invalid, its headers are too large, or it is too
 * slow. Writes directly to the socket, so it answers only if no other answer is due first: during a purchase, the
 * client would take a 400 for the answer to the purchase. In that case it closes the connection, and the client asks
 * again with its key.
 * @returns the code of the answer, or null
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): ProblemCode | null {
  const code = CODES[error.code ?? ''] ?? 'bad_request';
  if (!socket.writable || error.code === 'ECONNRESET' || !isNextToAnswer(socket as Marked)) {
    socket.destroy();
    return null;
  }
  const { status, headers, body } = problem(code);
  const lines = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    'Connection: close',
    `${TRACE_ID_HEADER}: ${traceIdOf(socket)}`,
  ];
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // The parser still reads. A request that arrives or completes now would be carried out although it has been refused.
  if (code === 'request_timeout') socket.once('finish', () => socket.destroy());
  return code;
}

/**
 * Returns the trace id of the request whose body is still arriving, or else a new id, because the headers of input that
 * never became a request are unknown.
 */
function traceIdOf(socket: Marked): string {
  const last = socket[LAST];
  const parent = last === undefined || last.writableFinished ? null : parentOf(last.req);
  return parent?.traceId ?? newTraceId();
}

/** True between requests, and while the body of the only request in progress is still arriving. */
function isNextToAnswer(socket: Marked): boolean {
  const last = socket[LAST];
  if (last === undefined || last.writableFinished) return true;
  return !last.req.complete && !last.headersSent && last.socket !== null;
}

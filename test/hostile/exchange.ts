import { connect } from 'node:net';

/** The bytes of a connection. Text has one character per byte. */
export interface Sent {
  readonly method: string;
  /** The request line, headers and blank line. */
  readonly head: string;
  /** The body, or the number of arbitrary bytes. */
  readonly body: string | number;
  readonly then: 'waits' | 'closes_its_side' | 'resets';
}

export interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export interface Received {
  readonly answers: readonly Answer[];
  /** The bytes after the last complete answer. */
  readonly rest: string;
  /** `silent`: neither an answer nor an end arrived in time. */
  readonly end: 'closed' | 'answered' | 'silent';
}

/** Far above every server time-out, so that a busy machine does not look like a silent server. */
const SILENT_AFTER_MS = 60_000;
/** Wait for further answers, which follow soon because each connection sends everything at once. */
const MORE_WITHIN_MS = 15;
const NO_CHUNKS = '0\r\n\r\n';
const JUNK = Buffer.alloc(64 * 1024, 'x');

/** Sends a request over a new connection, and reads until the answer is complete or the connection ends. */
export function exchange(port: number, { method, head, body, then }: Sent): Promise<Received> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    let quiet: NodeJS.Timeout | undefined;
    const silent = setTimeout(() => finish('silent'), SILENT_AFTER_MS);
    const finish = (end: Received['end']): void => {
      clearTimeout(silent);
      clearTimeout(quiet);
      socket.destroy();
      resolve({ ...readAnswers(text, method, end === 'closed'), end });
    };
    socket.setEncoding('latin1');
    socket.on('data', (more: string) => {
      text += more;
      const { answers, rest } = readAnswers(text, method, false);
      clearTimeout(quiet);
      if (answers.length > 0 && rest === '') quiet = setTimeout(() => finish('answered'), MORE_WITHIN_MS);
    });
    socket.on('error', () => undefined); // a reset counts as an end here
    socket.on('close', () => finish('closed'));
    socket.write(head, 'latin1');
    if (typeof body === 'string') socket.write(body, 'latin1');
    else for (let left = body; left > 0; left -= JUNK.length) socket.write(JUNK.subarray(0, left));
    if (then === 'closes_its_side') socket.end();
    if (then === 'resets') setTimeout(() => socket.resetAndDestroy(), 1);
  });
}

/** @param atEnd the connection has ended, so an answer without a length is complete */
function readAnswers(text: string, method: string, atEnd: boolean): { answers: Answer[]; rest: string } {
  const answers: Answer[] = [];
  let rest = text;
  for (;;) {
    const split = rest.indexOf('\r\n\r\n');
    if (split === -1) return { answers, rest };
    const [statusLine = '', ...lines] = rest.slice(0, split).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1] ?? NaN);
    if (Number.isNaN(status)) return { answers, rest };
    const headers = new Map(lines.map((line) => readHeader(line)));
    const start = split + 4;
    const isStream = headers.get('content-type') === 'text/event-stream';
    const bodiless = method === 'HEAD' || status < 200 || status === 204 || status === 304;
    const length = headers.get('content-length');
    const isChunked = headers.get('transfer-encoding') === 'chunked'; // Node's own 417 has no chunk with content
    let end = start + Number(length ?? 0);
    if (bodiless) end = start;
    else if (isStream || (length === undefined && !isChunked && atEnd)) end = rest.length;
    else if (isChunked) end += NO_CHUNKS.length;
    if (rest.length < end) return { answers, rest };
    if (status >= 200) answers.push({ status, headers, body: rest.slice(start, end) });
    rest = rest.slice(end);
  }
}

function readHeader(line: string): [string, string] {
  const colon = line.indexOf(':');
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

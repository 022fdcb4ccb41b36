/** The status of one whole answer. */
export interface ParsedAnswer {
  readonly status: number;
  /** The server closes the connection after it. */
  readonly closes: boolean;
}

const HEADERS_END = Buffer.from('\r\n\r\n');

/**
 * Reads answers from the bytes of one connection. Knows only what our servers send: a status line and Content-Length.
 */
export class AnswerReader {
  #pending: Buffer | null = null;

  /** @returns the answers that are whole now, in order. @throws Error when it is not such an answer */
  read(chunk: Buffer): ParsedAnswer[] {
    let bytes = this.#pending === null ? chunk : Buffer.concat([this.#pending, chunk]);
    const answers: ParsedAnswer[] = [];
    for (;;) {
      const headersEnd = bytes.indexOf(HEADERS_END);
      if (headersEnd === -1) break;
      const headers = bytes.toString('latin1', 0, headersEnd);
      const end = headersEnd + HEADERS_END.length + contentLength(headers);
      if (bytes.length < end) break;
      answers.push({ status: Number(headers.slice(9, 12)), closes: /\r\nconnection: close/i.test(headers) });
      bytes = bytes.subarray(end);
    }
    this.#pending = bytes.length === 0 ? null : bytes;
    return answers;
  }
}

function contentLength(headers: string): number {
  const length = /\r\ncontent-length: (\d+)/i.exec(headers)?.[1];
  if (length === undefined) throw new Error(`an answer without Content-Length: ${headers.slice(0, 200)}`);
  return Number(length);
}

import type { Line, TcpProxy } from './tcp-proxy.js';

/** An error that the server answered. */
export interface WireError {
  readonly errno: number;
  /** Its sentence, with the value and the key of a duplicate. */
  readonly text: string;
}

/** Where an error packet has its number: behind the length (3 bytes), the sequence and the mark of an error. */
const MARK_AT = 4;
const MARK = 0xff;
const ERRNO_AT = 5;
/** Where a statement begins: behind the same header and the number of the command. */
const TEXT_AT = 5;

/** What programs and MySQL say to each other through a proxy: statements travel as text, errors with their number. */
export class MysqlWire {
  /** Every error so far. */
  readonly errors: WireError[] = [];
  /** Sees each statement before it passes; false: it is lost. */
  onStatement: ((text: string, line: Line) => boolean) | null = null;
  readonly #statements = new Map<string, number>();
  readonly #muted = new WeakSet<Line>();

  /** @param counted beginnings of statements that are to be counted */
  constructor(proxy: TcpProxy, counted: readonly string[] = []) {
    for (const beginning of counted) this.#statements.set(beginning, 0);
    proxy.meddle = (what, chunk, line) => {
      return what === 'requests' ? this.#onRequest(chunk, line) : this.#onReply(chunk, line);
    };
  }

  /** From now on replies on this line are lost. */
  mute(line: Line): void {
    this.#muted.add(line);
  }

  /** How many errors there were with this number and, if given, this text in them. */
  count(errno: number, text = ''): number {
    return this.errors.filter((error) => error.errno === errno && error.text.includes(text)).length;
  }

  /** How many statements so far began like this; it must be one of those to be counted. */
  sent(beginning: string): number {
    return this.#statements.get(beginning) ?? Number.NaN;
  }

  #onRequest(chunk: Buffer, line: Line): boolean {
    const text = chunk.subarray(TEXT_AT).toString('latin1');
    for (const [beginning, count] of this.#statements) {
      if (text.startsWith(beginning)) this.#statements.set(beginning, count + 1);
    }
    return this.onStatement?.(text, line) ?? true;
  }

  #onReply(chunk: Buffer, line: Line): boolean {
    if (chunk.length > ERRNO_AT + 2 && chunk[MARK_AT] === MARK) {
      this.errors.push({ errno: chunk.readUInt16LE(ERRNO_AT), text: chunk.toString('utf8', ERRNO_AT + 2) });
    }
    return !this.#muted.has(line);
  }
}

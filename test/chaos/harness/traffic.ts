import { createHash } from 'node:crypto';
import { readScripts, type ScriptName } from '../../../src/redis/scripts.js';
import type { Line, TcpProxy } from './tcp-proxy.js';

/** From the begin of a script: enough to tell it from the others. */
const HEAD_BYTES = 40;

const shaOf = (text: Buffer): string => createHash('sha1').update(text).digest('hex');

/** Hashes by script: that of our file, and those of other versions, which a program that is not ours has sent whole. */
const knownShas = new Map<ScriptName, Set<string>>();

/** Whether a chunk of a request calls this script: by its hash, or whole, as the first call of a connection does. */
function callsOf(name: ScriptName): (chunk: Buffer) => boolean {
  const script = readScripts().find((one) => one.name === name);
  if (script === undefined) throw new Error(`lua/ has no script ${name}`);
  const shas = (knownShas.get(name) ?? new Set()).add(script.sha1);
  knownShas.set(name, shas);
  const head = script.text.slice(0, HEAD_BYTES);
  return (chunk) => {
    // the hash alone stands in SCRIPT EXISTS too
    if ([...shas].some((sha) => chunk.includes(`evalsha\r\n$40\r\n${sha}`))) return true;
    const [, bytes, rest] = /eval\r\n\$(\d+)\r\n([^]*)/.exec(chunk.toString('latin1')) ?? [];
    if (rest === undefined || !rest.startsWith(head)) return false;
    shas.add(shaOf(Buffer.from(rest.slice(0, Number(bytes)), 'latin1')));
    return true;
  };
}

/**
 * Runs `act` when the n-th call of a script arrives at the proxy before Redis, before Redis sees it. While the promise
 * is open, that call and what follows it on its connection wait.
 * @param key only calls that name a key with this in it; an api is also asked about batches of other sales
 */
export function atScriptCall(
  proxy: TcpProxy,
  name: ScriptName,
  act: () => void | Promise<void>,
  call: number = 1,
  key = '',
): void {
  const calls = callsOf(name);
  let left = call;
  proxy.onRequest = (chunk) => {
    if (!calls(chunk) || !chunk.includes(key) || --left !== 0) return;
    proxy.onRequest = null;
    return act();
  };
}

/** How a reply of `deduct` begins: a list, whose first element is the word. Other scripts answer the same words bare. */
const deductReply = (word: string): RegExp => new RegExp(`\\*\\d+\\r\\n\\$${word.length}\\r\\n${word}\\r\\n`, 'g');

/**
 * Counts the answers of `deduct` that come through a proxy before Redis from here on.
 * @returns how many there were so far with this word
 */
export function countDeductReplies(proxy: TcpProxy, word: 'deducted' | 'already_deducted' | 'aborted'): () => number {
  const pattern = deductReply(word);
  let count = 0;
  proxy.meddle = (what, chunk) => {
    if (what === 'replies') count += chunk.toString('latin1').match(pattern)?.length ?? 0;
    return true;
  };
  return () => count;
}

/** What a program sends to the broker through a proxy. Bodies and ids travel as text; headers, which do not, are not read. */

const BATCH_ID = /"batchId":"([\w-]{22})"/g;
/** Version 1, MAC, pid, seconds, sequence number: 17 bytes in hex. */
const MESSAGE_ID = /01[0-9A-F]{32}/g;

/** Ids of batches in message bodies; more as they pass. */
export const batchIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, BATCH_ID);

/** Ids that the client gave to its messages; more as they pass. */
export const messageIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, MESSAGE_ID);

/** What of a message id the time and the process decide: all but version and MAC. */
export const withoutMac = (messageId: string): string => messageId.slice(14);

function collect(proxy: TcpProxy, pattern: RegExp): ReadonlySet<string> {
  const found = new Set<string>();
  proxy.meddle = (what, chunk) => {
    if (what === 'requests') {
      for (const [whole, part] of chunk.toString('latin1').matchAll(pattern)) found.add(part ?? whole);
    }
    return true;
  };
  return found;
}

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

import { createHash } from 'node:crypto';
import { readScripts, type ScriptName } from '../../../src/redis/scripts.js';
import type { ProxiedConnection, TcpProxy } from './tcp-proxy.js';

/** Length of a prefix that is unique to each script, in bytes. */
const HEAD_BYTES = 40;

const shaOf = (text: Buffer): string => createHash('sha1').update(text).digest('hex');

/** Hashes by script: the hash of our file, and the hashes of other versions that a mutated build has sent as text. */
const knownShas = new Map<ScriptName, Set<string>>();

/**
 * Returns whether a chunk of a request calls this script, either by its hash or as text, as in the first call of a
 * connection.
 */
function callsOf(name: ScriptName): (chunk: Buffer) => boolean {
  const script = readScripts().find((one) => one.name === name);
  if (script === undefined) throw new Error(`lua/ has no script ${name}`);
  const shas = (knownShas.get(name) ?? new Set()).add(script.sha1);
  knownShas.set(name, shas);
  const head = script.text.slice(0, HEAD_BYTES);
  return (chunk) => {
    // SCRIPT EXISTS contains the hash too
    if ([...shas].some((sha) => chunk.includes(`evalsha\r\n$40\r\n${sha}`))) return true;
    const [, bytes, rest] = /eval\r\n\$(\d+)\r\n([^]*)/.exec(chunk.toString('latin1')) ?? [];
    if (rest === undefined || !rest.startsWith(head)) return false;
    shas.add(shaOf(Buffer.from(rest.slice(0, Number(bytes)), 'latin1')));
    return true;
  };
}

/**
 * Runs `act` when the n-th call of a script arrives at the proxy, before Redis sees it. While the promise is open, that
 * call and everything after it on its connection wait.
 * @param key counts only calls with a key that contains this text, because an api also gets check-backs of other sales
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

/** Start of a reply of `deduct`: a list whose first element is the word. Other scripts reply with the bare word. */
const deductReply = (word: string): RegExp => new RegExp(`\\*\\d+\\r\\n\\$${word.length}\\r\\n${word}\\r\\n`, 'g');

/**
 * From now on, counts the replies of `deduct` that pass a proxy in front of Redis.
 * @returns a function that returns how many had this word so far
 */
export function countDeductReplies(proxy: TcpProxy, word: 'deducted' | 'already_deducted' | 'aborted'): () => number {
  const pattern = deductReply(word);
  let count = 0;
  proxy.intercept = (what, chunk) => {
    if (what === 'replies') count += chunk.toString('latin1').match(pattern)?.length ?? 0;
    return true;
  };
  return () => count;
}

// Reads what a program sends to the broker. Bodies and ids are sent as text. Headers are not, and are not read.

const BATCH_ID = /"batchId":"([\w-]{22})"/g;
/** Version 1, MAC, pid, seconds, sequence number: 17 bytes in hex. */
const MESSAGE_ID = /01[0-9A-F]{32}/g;

/** Ids of batches in message bodies; grows as messages pass. */
export const batchIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, BATCH_ID);

/** Ids that the client gave to its messages; grows as they pass. */
export const messageIdsOn = (proxy: TcpProxy): ReadonlySet<string> => collect(proxy, MESSAGE_ID);

/** Returns the part of a message id that depends on time and process: everything except version and MAC. */
export const withoutMac = (messageId: string): string => messageId.slice(14);

function collect(proxy: TcpProxy, pattern: RegExp): ReadonlySet<string> {
  const found = new Set<string>();
  proxy.intercept = (what, chunk) => {
    if (what === 'requests') {
      for (const [whole, part] of chunk.toString('latin1').matchAll(pattern)) found.add(part ?? whole);
    }
    return true;
  };
  return found;
}

/** An error that the server returned. */
export interface WireError {
  readonly errno: number;
  /** Its message, with the value and the key of a duplicate. */
  readonly text: string;
}

/** Offsets in an error packet: after the length (3 bytes) and the sequence come the error marker and the number. */
const MARK_AT = 4;
const MARK = 0xff;
const ERRNO_AT = 5;
/** A statement follows the same header and the number of the command. */
const TEXT_AT = 5;

/** Reads the traffic of a proxy in front of MySQL: statements as text, and errors with their number. */
export class MysqlWire {
  /** All errors so far. */
  readonly errors: WireError[] = [];
  /** Called with each statement before it passes; false loses it. */
  onStatement: ((text: string, connection: ProxiedConnection) => boolean) | null = null;
  readonly #statements = new Map<string, number>();
  readonly #replyless = new WeakSet<ProxiedConnection>();

  /** @param counted beginnings of the statements to count */
  constructor(proxy: TcpProxy, counted: readonly string[] = []) {
    for (const start of counted) this.#statements.set(start, 0);
    proxy.intercept = (what, chunk, connection) => {
      return what === 'requests' ? this.#onRequest(chunk, connection) : this.#onReply(chunk, connection);
    };
  }

  /** From now on, loses replies on this connection. */
  dropReplies(connection: ProxiedConnection): void {
    this.#replyless.add(connection);
  }

  /** Counts errors so far with this number and, if given, this text. */
  count(errno: number, text = ''): number {
    return this.errors.filter((error) => error.errno === errno && error.text.includes(text)).length;
  }

  /** Counts statements that start with this text, which must be among the counted texts. */
  sent(start: string): number {
    return this.#statements.get(start) ?? Number.NaN;
  }

  #onRequest(chunk: Buffer, connection: ProxiedConnection): boolean {
    const text = chunk.subarray(TEXT_AT).toString('latin1');
    for (const [start, count] of this.#statements) {
      if (text.startsWith(start)) this.#statements.set(start, count + 1);
    }
    return this.onStatement?.(text, connection) ?? true;
  }

  #onReply(chunk: Buffer, connection: ProxiedConnection): boolean {
    if (chunk.length > ERRNO_AT + 2 && chunk[MARK_AT] === MARK) {
      this.errors.push({ errno: chunk.readUInt16LE(ERRNO_AT), text: chunk.toString('utf8', ERRNO_AT + 2) });
    }
    return !this.#replyless.has(connection);
  }
}

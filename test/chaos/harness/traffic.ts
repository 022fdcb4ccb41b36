import { createHash } from 'node:crypto';
import { readScripts, type ScriptName } from '../../../src/redis/scripts.js';
import type { TcpProxy } from './tcp-proxy.js';

/** Length of a prefix that differs between all scripts, in bytes. */
const HEAD_BYTES = 40;

const shaOf = (text: Buffer): string => createHash('sha1').update(text).digest('hex');

/** Hashes by script: of our file, and of versions that a mutated build has sent as text. */
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

// Reads bodies and ids that a program sends to the broker as text. Headers are binary, and are not read.

const BATCH_ID = /"batchId":"([\w-]{22})"/g;

/** Ids of all batches that have passed in message bodies so far. */
export function batchIdsOn(proxy: TcpProxy): ReadonlySet<string> {
  const found = new Set<string>();
  proxy.intercept = (what, chunk) => {
    if (what === 'requests') {
      for (const [, batchId] of chunk.toString('latin1').matchAll(BATCH_ID)) found.add(batchId as string);
    }
    return true;
  };
  return found;
}

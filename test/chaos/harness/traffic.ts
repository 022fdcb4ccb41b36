import { createHash } from 'node:crypto';
import { readScripts, type ScriptName } from '../../../src/redis/scripts.js';
import type { TcpProxy } from './tcp-proxy.js';

/** Number of bytes at the start of a script that differ from those of every other script. */
const HEAD_BYTES = 40;

const shaOf = (text: Buffer): string => createHash('sha1').update(text).digest('hex');

/** Hashes by script: that of our file, and those of other versions that a mutated build has sent as text. */
const knownShas = new Map<ScriptName, Set<string>>();

/** Whether a chunk of a request calls this script: by its hash, or as text, as the first call of a connection does. */
function callsOf(name: ScriptName): (chunk: Buffer) => boolean {
  const script = readScripts().find((one) => one.name === name);
  if (script === undefined) throw new Error(`lua/ has no script ${name}`);
  const shas = (knownShas.get(name) ?? new Set()).add(script.sha1);
  knownShas.set(name, shas);
  const head = script.text.slice(0, HEAD_BYTES);
  return (chunk) => {
    // SCRIPT EXISTS holds the hash too
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
 * @param key only calls that name a key with this in it; an api also gets check-backs of other sales
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

/** Ids of batches in the message bodies that a program sends to the broker; more as they pass. */
export function batchIdsOn(proxy: TcpProxy): ReadonlySet<string> {
  const found = new Set<string>();
  proxy.intercept = (what, chunk) => {
    if (what === 'requests') {
      for (const [, id] of chunk.toString('latin1').matchAll(/"batchId":"([\w-]{22})"/g)) found.add(id as string);
    }
    return true;
  };
  return found;
}

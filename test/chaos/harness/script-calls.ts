import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ScriptName } from '../../../src/redis/scripts.js';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import type { TcpProxy } from './tcp-proxy.js';

const LUA_DIR = join(REPO_DIR, 'lua');

/** From the begin of a script: enough to tell it from the others. */
const HEAD_BYTES = 40;

const shaOf = (text: Buffer): string => createHash('sha1').update(text).digest('hex');

/** Hashes by script: that of our file, and those of other versions, which a program that is not ours has sent whole. */
const knownShas = new Map<ScriptName, Set<string>>();

/** Whether a chunk of a request calls this script: by its hash, or whole, as the first call of a connection does. */
function callsOf(name: ScriptName): (chunk: Buffer) => boolean {
  const file = readdirSync(LUA_DIR).find((one) => one.startsWith(`${name}-`));
  if (file === undefined) throw new Error(`lua/ has no script ${name}`);
  const text = readFileSync(join(LUA_DIR, file));
  const shas = (knownShas.get(name) ?? new Set()).add(shaOf(text));
  knownShas.set(name, shas);
  const head = text.subarray(0, HEAD_BYTES).toString('latin1');
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

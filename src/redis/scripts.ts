import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import type { RedisClient } from './client.js';

export const SCRIPT_NAMES = [
  'precheck',
  'deduct',
  'resolve',
  'read-request',
  'mark-recorded',
  'release',
  'reacquire',
  'unpark',
  'warm',
  'set-state',
  'adjust',
  'bucket-status',
  'lock',
  'stage',
  'restore-marker',
  'swap',
  'take-permits',
  'report-breakers',
  'issue-token',
  'redeem-token',
  'read-transfers',
  'transfer-out',
  'transfer-in',
  'transfer-end',
] as const;
export type ScriptName = (typeof SCRIPT_NAMES)[number];

const LUA_FOLDER = new URL('../../lua/', import.meta.url);
const FILE_NAME = /^([a-z]+(?:-[a-z]+)*)-(\d+)\.lua$/;

export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

export interface Scripts {
  readonly run: RunScript;
  /** Gives all of them to a server, so that the first purchase after its start finds them. */
  load(server: Redis): Promise<void>;
  /** How many of them each of these servers knows. */
  loaded(servers: readonly Redis[]): Promise<number>;
}

/**
 * Defines the scripts of `lua/` on a connection. EVALSHA first; a server that has forgotten the script (restart,
 * SCRIPT FLUSH) gets it whole, which is safe because NOSCRIPT means that nothing ran.
 */
export function loadScripts(redis: RedisClient): Scripts {
  const keyCounts = new Map<string, number>();
  const texts: string[] = [];
  for (const file of readdirSync(LUA_FOLDER)) {
    const [, name, keys] = FILE_NAME.exec(file) ?? [];
    if (!name) continue;
    const lua = readFileSync(new URL(file, LUA_FOLDER), 'utf8');
    keyCounts.set(name, Number(keys));
    texts.push(lua);
    redis.defineCommand(name, { numberOfKeys: Number(keys), lua });
  }
  const missing = SCRIPT_NAMES.filter((name) => !keyCounts.has(name));
  if (missing.length > 0) throw new Error(`lua/ lacks the scripts ${missing.join(', ')}: reinstall the package`);

  type Command = (...args: readonly (string | number)[]) => Promise<unknown>;
  const commands = redis as unknown as Record<ScriptName, Command>;
  const hashes = texts.map((text) => createHash('sha1').update(text).digest('hex'));
  return {
    run: (name, keys, args) => commands[name](...keys, ...args),
    async load(server): Promise<void> {
      await Promise.all(texts.map((text) => server.script('LOAD', text)));
    },
    async loaded(servers): Promise<number> {
      const known = await Promise.all(servers.map((server) => server.script('EXISTS', ...hashes) as Promise<number[]>));
      return hashes.filter((_, index) => known.every((one) => one[index] === 1)).length;
    },
  };
}

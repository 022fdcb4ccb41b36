import { readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

export const SCRIPT_NAMES = ['precheck', 'deduct', 'decide', 'settle', 'release', 'unpark', 'warm', 'gate'] as const;
export type ScriptName = (typeof SCRIPT_NAMES)[number];

const LUA_FOLDER = new URL('../../lua/', import.meta.url);
const FILE_NAME = /^([a-z]+)-(\d+)\.lua$/;

export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

/**
 * Defines the scripts of `lua/` on a connection. EVALSHA first; a server that has forgotten the script (restart,
 * SCRIPT FLUSH) gets it whole, which is safe because NOSCRIPT means that nothing ran.
 */
export function loadScripts(redis: Redis): RunScript {
  const keyCounts = new Map<string, number>();
  for (const file of readdirSync(LUA_FOLDER)) {
    const [, name, keys] = FILE_NAME.exec(file) ?? [];
    if (!name) continue;
    keyCounts.set(name, Number(keys));
    redis.defineCommand(name, { numberOfKeys: Number(keys), lua: readFileSync(new URL(file, LUA_FOLDER), 'utf8') });
  }
  const missing = SCRIPT_NAMES.filter((name) => !keyCounts.has(name));
  if (missing.length > 0) throw new Error(`lua/ lacks the scripts ${missing.join(', ')}: reinstall the package`);

  type Command = (...args: readonly (string | number)[]) => Promise<unknown>;
  const commands = redis as unknown as Record<ScriptName, Command>;
  return (name, keys, args) => commands[name](...keys, ...args);
}

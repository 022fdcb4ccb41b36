import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { PACKAGE_ROOT } from '../core/package-root.js';
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
  'take-due',
  'leave-alone',
  'warm',
  'set-state',
  'adjust',
  'edit',
  'bucket-status',
  'lock',
  'stage',
  'restore-marker',
  'swap',
  'take-permits',
  'report-breakers',
  'take-nonce',
  'issue-token',
  'redeem-token',
  'read-line',
  'take-place',
  'steer-line',
  'read-transfers',
  'transfer-out',
  'transfer-in',
  'transfer-end',
] as const;
export type ScriptName = (typeof SCRIPT_NAMES)[number];

const LUA_FOLDER = new URL('lua/', PACKAGE_ROOT);
const FILE_NAME = /^([a-z]+(?:-[a-z]+)*)-(\d+)\.lua$/;
const INCLUDE = /^--- include "(.*)"$/gm;

export interface Script {
  readonly name: ScriptName;
  readonly numberOfKeys: number;
  /** Its text, with fragments inserted. */
  readonly text: string;
  /** Name of the script for EVALSHA, and in the slow log of Redis. */
  readonly sha1: string;
}

/**
 * A line `--- include "name"` stands for `lua/include/name.lua`. A fragment is inserted once, even if other fragments
 * include it, because its names are then defined.
 * @throws Error that names a missing script or fragment
 */
export function readScripts(folder: URL = LUA_FOLDER): Script[] {
  const files = new Map(readdirSync(folder).map((file) => [FILE_NAME.exec(file)?.[1], file]));
  return SCRIPT_NAMES.map((name) => {
    const file = files.get(name);
    if (file === undefined) throw new Error(`lua/ lacks the script ${name}: reinstall the package`);
    const text = withIncludes(readFileSync(new URL(file, folder), 'utf8'), folder, new Set());
    const sha1 = createHash('sha1').update(text).digest('hex');
    return { name, numberOfKeys: Number(FILE_NAME.exec(file)?.[2]), text, sha1 };
  });
}

function withIncludes(text: string, folder: URL, included: Set<string>): string {
  return text.replaceAll(INCLUDE, (_line, name: string) => {
    if (included.has(name)) return `-- (${name} is above)`;
    included.add(name);
    const file = new URL(`include/${name}.lua`, folder);
    if (!existsSync(file)) throw new Error(`lua/include/ lacks the fragment ${name}: reinstall the package`);
    return withIncludes(readFileSync(file, 'utf8'), folder, included).trimEnd();
  });
}

export type RunScript = (
  name: ScriptName,
  keys: readonly string[],
  args: readonly (string | number)[],
) => Promise<unknown>;

export interface Scripts {
  readonly run: RunScript;
  /** Loads all scripts into a server, so that the first purchase after its start finds them. */
  load(server: Redis): Promise<void>;
  /** Counts the scripts that each server knows. */
  loaded(servers: readonly Redis[]): Promise<number>;
}

/**
 * The driver tries EVALSHA first. If the server has forgotten the script (restart, SCRIPT FLUSH), it sends the whole
 * script: NOSCRIPT means that nothing was run.
 */
export function loadScripts(redis: RedisClient): Scripts {
  const scripts = readScripts();
  for (const { name, numberOfKeys, text } of scripts) redis.defineCommand(name, { numberOfKeys, lua: text });

  type Command = (...args: readonly (string | number)[]) => Promise<unknown>;
  const commands = redis as unknown as Record<ScriptName, Command>;
  const hashes = scripts.map(({ sha1 }) => sha1);
  return {
    run: (name, keys, args) => commands[name](...keys, ...args),
    async load(server): Promise<void> {
      await Promise.all(scripts.map(({ text }) => server.script('LOAD', text)));
    },
    async loaded(servers): Promise<number> {
      const known = await Promise.all(servers.map((server) => server.script('EXISTS', ...hashes) as Promise<number[]>));
      return hashes.filter((_, index) => known.every((one) => one[index] === 1)).length;
    },
  };
}

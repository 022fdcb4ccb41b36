import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Bug } from '../../../src/core/errors.js';
import { TEMPLATES_DIR } from './paths.js';
import { StackError } from './stack-error.js';

/**
 * Makes a folder and its parents. Does not use `recursive: true`, which loops forever in Node 20 if an existing folder
 * refuses new folders with ENOENT, as /proc does.
 */
export function ensureFolder(dir: string): void {
  if (existsSync(dir)) return;
  ensureFolder(dirname(dir));
  try {
    mkdirSync(dir);
  } catch (error) {
    if (!existsSync(dir)) throw error; // unless another process was faster
  }
}

/**
 * Makes a data folder unless it exists. The folder gets its name only when it is complete, so an interrupted start
 * leaves nothing that looks like data.
 * @param fill fills an empty folder
 */
export async function makeDataFolder(dataDir: string, fill: (draft: string) => Promise<void>): Promise<void> {
  if (existsSync(dataDir)) return;
  const prefix = `${basename(dataDir)}.part-`;
  mkdirSync(dirname(dataDir), { recursive: true });
  for (const entry of readdirSync(dirname(dataDir)).filter((name) => name.startsWith(prefix))) {
    rmSync(join(dirname(dataDir), entry), { recursive: true, force: true });
  }
  const draft = join(dirname(dataDir), `${prefix}${process.pid}`);
  mkdirSync(draft);
  try {
    await fill(draft);
    renameSync(draft, dataDir);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

const MIB = 1024 ** 2;

/** Makes the folder if needed. @throws StackError when its volume has less free space (in bytes) than needed */
export function assertDiskSpace(dir: string, neededBytes: number): void {
  ensureFolder(dir);
  const freeBytes = freeSpaceBytes(dir);
  if (freeBytes >= neededBytes) return;
  throw new StackError(
    `The disk of ${dir} has ${Math.floor(freeBytes / MIB)} MiB left, ${Math.ceil(neededBytes / MIB)} MiB are needed; ` +
      'free some space and run the same command again.',
  );
}

/** Servers that fail on a full disk often cannot log the reason. */
const NEARLY_FULL_BYTES = 64 * MIB;

/** Returns a part of a sentence if the disk is full or nearly full, otherwise an empty text. */
export function fullDiskHint(dir: string): string {
  return freeSpaceBytes(dir) < NEARLY_FULL_BYTES ? `the disk of ${dir} is full: free some space` : '';
}

function freeSpaceBytes(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

/** Replaces each `${name}`. A name without a value is a bug, not a user error. */
function renderTemplate(template: string, values: Readonly<Record<string, string | number>>): string {
  return template.replace(/\$\{(\w+)\}/g, (_match, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Bug(`the template asks for ${name}, which has no value`);
    return String(value);
  });
}

/** Escapes a value for RocketMQ, which reads its .conf files as Java properties: Latin-1, with backslash escapes. */
export function escapeProperty(value: string): string {
  return value
    .replaceAll('\\', '\\\\')
    .replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Renders a template of deploy/local to the path where its server reads it. */
export function writeConf(template: string, target: string, values: Readonly<Record<string, string | number>>): void {
  const rendered = renderTemplate(readFileSync(join(TEMPLATES_DIR, template), 'utf8'), values);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, rendered, { mode: 0o600 });
  chmodSync(target, 0o600); // the mode above applies only to a new file
}

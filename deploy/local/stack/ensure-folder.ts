import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and the ones above it. In its place stands no `recursive: true`, which spins for ever in Node 20 where
 * an existing folder refuses new ones with ENOENT, as /proc does.
 */
export function ensureFolder(dir: string): void {
  if (existsSync(dir)) return;
  ensureFolder(dirname(dir));
  mkdirSync(dir);
}

import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { readPidFile, writePidFile } from './pid-file.js';

/**
 * Takes a lock between processes: a file that names its owner. The lock of a dead owner counts for nothing.
 * @returns what gives it back, or the pid of the live owner
 */
export function tryLock(path: string): { release: () => void } | { heldBy: number } {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writePidFile(draft, process.pid);
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        linkSync(draft, path); // fails if the lock exists, and shows it with its content at once
        return { release: () => rmSync(path, { force: true }) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const owner = readPidFile(path);
      if (owner !== null) return { heldBy: owner.pid };
      rmSync(path, { force: true }); // its owner is dead
    }
    return { heldBy: 0 };
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes a file in one step: readers see the old content or the new, never half of it. */
export function createOnce(path: string, content: string, mode: number): string {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content, { mode });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // somebody was first: theirs counts
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(path, 'utf8');
}

import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.js';

/** Notes who was started. Written whole or not at all. */
export function writePidFile(path: string, pid: number): void {
  const identity = identityOf(pid);
  if (identity === null) return; // ended already: there is nobody to stop later
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(identity)}\n`);
  renameSync(draft, path);
}

/** @returns the process of this file while it lives; null for no file, a damaged one, or a pid that changed hands */
export function readPidFile(path: string): ProcessIdentity | null {
  try {
    const noted = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProcessIdentity>;
    const { pid, startTicks, bootId } = noted;
    // 0 and negative numbers address whole groups of processes
    if (typeof pid !== 'number' || !Number.isInteger(pid) || pid < 2) return null;
    if (typeof startTicks !== 'string' || typeof bootId !== 'string') return null;
    return isAlive({ pid, startTicks, bootId }) ? { pid, startTicks, bootId } : null;
  } catch {
    return null;
  }
}

/**
 * Sends a signal to the process of this file, if it still is that process.
 * @returns false when there was nobody to signal
 */
export function signalPidFile(path: string, signal: NodeJS.Signals): boolean {
  const identity = readPidFile(path);
  if (identity === null) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false; // ended between look and signal
    throw error;
  }
}

export function removePidFile(path: string): void {
  rmSync(path, { force: true });
}

/** Milliseconds since the process of this file was started; 0 without a file. */
export function pidFileAgeMs(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 0 : Date.now() - stat.mtimeMs;
}

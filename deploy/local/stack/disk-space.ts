import { statfsSync } from 'node:fs';
import { ensureFolder } from './ensure-folder.js';
import { StackError } from './stack-error.js';

const MIB = 1024 ** 2;

/** Makes the folder if need be. @throws StackError when its volume has less free space (in bytes) than needed */
export function assertDiskSpace(dir: string, neededBytes: number): void {
  ensureFolder(dir);
  const freeBytes = freeSpaceBytes(dir);
  if (freeBytes >= neededBytes) return;
  throw new StackError(
    `The disk of ${dir} has ${Math.floor(freeBytes / MIB)} MiB left, ${Math.ceil(neededBytes / MIB)} MiB are needed; ` +
      'free some space and run `stack up` again.',
  );
}

/** Servers that die of a full disk often cannot even write why. */
const NEARLY_FULL_BYTES = 64 * MIB;

/** A part of a sentence when the disk is (nearly) full, else nothing. */
export function fullDiskHint(dir: string): string {
  return freeSpaceBytes(dir) < NEARLY_FULL_BYTES ? `the disk of ${dir} is full: free some space` : '';
}

function freeSpaceBytes(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

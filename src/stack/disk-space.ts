import { statfsSync } from 'node:fs';
import { ensureFolder } from './ensure-folder.js';
import { StackError } from './stack-error.js';

const MIB = 1024 ** 2;

/** Makes the folder if need be. @throws StackError when the volume of this folder has less free space (in bytes) than needed */
export function assertDiskSpace(dir: string, neededBytes: number): void {
  ensureFolder(dir);
  const { bavail, bsize } = statfsSync(dir);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  throw new StackError(
    `The disk of ${dir} has ${Math.floor(freeBytes / MIB)} MiB left, ${Math.ceil(neededBytes / MIB)} MiB are needed; ` +
      'free some space and run `stack up` again.',
  );
}

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';

// A volume of its own for one folder, in memory, so that a row can fill a disk without harm to the machine.

const FILLER = 'filler';
const CHUNK = Buffer.alloc(1024 ** 2);

/** Lays an empty volume over a folder; what was in it is hidden until `unmountBelow`. @throws where that is forbidden */
export function mountVolume(dir: string, sizeBytes: number): void {
  mkdirSync(dir, { recursive: true });
  run('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes},mode=0700`, 'seckill-chaos', dir]);
}

/** Takes every volume away that lies on this folder or below it. A run that was killed may have left one. */
export function unmountBelow(dir: string): void {
  const whole = resolve(dir);
  for (const point of mountPoints().reverse()) {
    if (point === whole || point.startsWith(whole + sep)) run('umount', ['--lazy', point]);
  }
}

/** A sentence why this process may not mount, or null. */
export function mountRefusal(): string | null {
  const dir = mkdtempSync(join(tmpdir(), 'seckill-mount-'));
  try {
    mountVolume(dir, CHUNK.length);
    return null;
  } catch {
    return 'it needs a small volume, and only root may mount one (mount -t tmpfs)';
  } finally {
    unmountBelow(dir);
    rmdirSync(dir);
  }
}

/** Used part of a volume, 0 to 1. */
export function usedPart(dir: string): number {
  const { blocks, bfree } = statfsSync(dir);
  return (blocks - bfree) / blocks;
}

/** Writes a file that leaves the volume filled to this part; 1: not one block is left. */
export function fillVolume(dir: string, part: number): void {
  const file = openSync(join(dir, FILLER), 'a');
  try {
    while (usedPart(dir) < part) writeSync(file, CHUNK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error; // somebody else took the last block
  } finally {
    closeSync(file);
  }
}

/** Takes that file away. */
export const freeVolume = (dir: string): void => rmSync(join(dir, FILLER), { force: true });

function mountPoints(): string[] {
  const lines = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n');
  // blanks and the like stand there in octal
  return lines.map((line) =>
    (line.split(' ')[1] ?? '').replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
  );
}

/** @throws Error with what the command said */
function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 10_000 });
}

import { execFileSync } from 'node:child_process';
import {
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import type { ScenarioContext } from '../context.js';
import { dataOf } from './backup.js';

// Gives a folder its own volume in memory, so that a scenario can fill a disk without harm to the machine.

const FILLER = 'filler';
const CHUNK = Buffer.alloc(1024 ** 2);

/** Mounts an empty volume over a folder, which hides its contents until `unmountBelow`. @throws if not permitted */
export function mountVolume(dir: string, sizeBytes: number): void {
  mkdirSync(dir, { recursive: true });
  run('mount', ['-t', 'tmpfs', '-o', `size=${sizeBytes},mode=0700`, 'seckill-chaos', dir]);
}

/** Unmounts every volume on or below this folder. A killed run may have left one. */
export function unmountBelow(dir: string): void {
  const whole = resolve(dir);
  for (const point of mountPoints().reverse()) {
    if (point === whole || point.startsWith(whole + sep)) run('umount', ['--lazy', point]);
  }
}

/** Returns a sentence that says why this process may not mount, or null. */
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

/** Used share of a volume, 0 to 1. */
function usedPart(dir: string): number {
  const { blocks, bfree } = statfsSync(dir);
  return (blocks - bfree) / blocks;
}

/** Writes a file that fills the volume to this share. 1 leaves no block. */
export function fillVolume(dir: string, part: number): void {
  const file = openSync(join(dir, FILLER), 'a');
  try {
    while (usedPart(dir) < part) writeSync(file, CHUNK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error; // another process took the last block
  } finally {
    closeSync(file);
  }
}

export const freeVolume = (dir: string): void => rmSync(join(dir, FILLER), { force: true });

function mountPoints(): string[] {
  const lines = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n');
  // blanks and similar characters are written in octal
  return lines.map((line) =>
    (line.split(' ')[1] ?? '').replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))),
  );
}

/** @throws Error with the stderr of the command */
function run(command: string, args: readonly string[]): void {
  execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 10_000 });
}

/** Several times the MySQL data of earlier scenarios. */
export const VOLUME_BYTES = 1024 ** 3;

/**
 * Moves the data of a server to a small volume until the scenario is over. The server restarts with all its data.
 * @returns the folder, which can be filled
 */
export async function moveToSmallVolume(context: ScenarioContext, name: 'redis' | 'mysql'): Promise<string> {
  const { servers } = context.stack;
  const server = servers.server(name);
  const dir = dataOf(context.stack, name);
  const home = `${dir}-moved`;
  await server.stop();
  renameSync(dir, home);
  context.atEnd(async () => {
    await server.stop(); // the runner makes every server run again
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
    renameSync(home, dir);
  });
  mountVolume(dir, VOLUME_BYTES);
  cpSync(home, dir, { recursive: true });
  context.atEnd(async () => {
    await server.stop();
    freeVolume(dir);
    rmSync(home, { recursive: true });
    cpSync(dir, home, { recursive: true });
  });
  await server.start();
  await server.waitReady();
  return dir;
}

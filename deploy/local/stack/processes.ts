import { spawn } from 'node:child_process';
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { LaunchCommand } from './servers/server-spec.js';
import { ensureFolder } from './files.js';
import { explainFileError, StackError } from './stack-error.js';

/**
 * Identifies a process beyond its pid. Pids are reused, so a number in a file may name another process now. Pid, start
 * time and boot together are unique.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks between boot and the start of the process: field 22 of /proc/<pid>/stat. */
  readonly startTicks: string;
  /** Changes at every boot of the machine, after which pid and ticks can repeat. */
  readonly bootId: string;
}

interface ProcessStat {
  /** A letter: `Z` is dead and waits for its parent, `T` is stopped by a signal. */
  readonly state: string;
  readonly startTicks: string;
}

/** The command name (field 2) may contain spaces and brackets, so counting starts after the last bracket. */
export function parseStat(stat: string): ProcessStat | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]]; // fields 3 and 22
  return state === undefined || startTicks === undefined ? null : { state, startTicks };
}

/** @returns the current process with this pid, or null for no process or a zombie */
export function identityOf(pid: number): ProcessIdentity | null {
  try {
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    if (stat === null || stat.state === 'Z') return null;
    return { pid, startTicks: stat.startTicks, bootId: bootId() };
  } catch {
    return null;
  }
}

/** @returns the pid of the parent (field 4 of /proc/<pid>/stat), or null for a process that has ended */
export function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}

/** Whether a process got SIGSTOP without SIGCONT: it is alive but answers nothing. */
export function isStopped(pid: number): boolean {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.state === 'T';
  } catch {
    return false;
  }
}

/** Whether the recorded process itself is alive. */
function isAlive(noted: ProcessIdentity): boolean {
  const now = identityOf(noted.pid);
  return now !== null && now.startTicks === noted.startTicks && now.bootId === noted.bootId;
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Records a started process. Writes the file atomically. */
export function writePidFile(path: string, pid: number): void {
  const identity = identityOf(pid);
  if (identity === null) return; // already ended: there is no process to stop later
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(identity)}\n`);
  renameSync(draft, path);
}

/**
 * @returns the process of this file while it lives, or null if the file is missing or damaged or another process has
 * the pid
 */
export function readPidFile(path: string): ProcessIdentity | null {
  try {
    const noted = JSON.parse(readFileSync(path, 'utf8')) as Partial<ProcessIdentity>;
    const { pid, startTicks, bootId } = noted;
    // 0 and negative numbers address whole process groups
    if (typeof pid !== 'number' || !Number.isInteger(pid) || pid < 2) return null;
    if (typeof startTicks !== 'string' || typeof bootId !== 'string') return null;
    return isAlive({ pid, startTicks, bootId }) ? { pid, startTicks, bootId } : null;
  } catch {
    return null;
  }
}

/**
 * Sends a signal to the process of this file if its pid was not reused.
 * @returns false if that process has ended
 */
export function signalPidFile(path: string, signal: NodeJS.Signals): boolean {
  const identity = readPidFile(path);
  if (identity === null) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false; // ended between read and signal
    throw error;
  }
}

export function removePidFile(path: string): void {
  rmSync(path, { force: true });
}

/** Returns the milliseconds since the process of this file was started, or 0 without a file. */
export function pidFileAgeMs(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 0 : Date.now() - stat.mtimeMs;
}

/**
 * Takes a lock between processes: a file that names its owner. Ignores the lock of a dead owner.
 * @returns a function that releases the lock, or the pid of the live owner
 * @throws StackError when the folder cannot be written
 */
export function tryLock(path: string): { release: () => void } | { heldBy: number } {
  try {
    return takeLock(path);
  } catch (error) {
    throw explainFileError(error, dirname(path));
  }
}

function takeLock(path: string): { release: () => void } | { heldBy: number } {
  ensureFolder(dirname(path));
  const draft = `${path}.${process.pid}`;
  writePidFile(draft, process.pid);
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      try {
        linkSync(draft, path); // fails if the lock exists, and appears with its content at once
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

/** Creates a file atomically unless it exists: readers never see half of it. @returns the content of the file */
export function createOnce(path: string, content: string, mode: number): string {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, content, { mode });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // another process was first: its file is valid
  } finally {
    rmSync(draft, { force: true });
  }
  return readFileSync(path, 'utf8');
}

/**
 * Starts a server in its own session: it outlives this process, and Ctrl-C in the terminal does not reach it.
 * @param options.log open file for stdout and stderr
 * @throws StackError when the program cannot be run
 */
export async function spawnDetached(
  { file, args }: LaunchCommand,
  { log, cwd, pidFile }: { log: number; cwd: string; pidFile: string },
): Promise<void> {
  const umask = process.umask(0o077); // files of a server, such as an append-only file, are private to its user
  const child = spawn(file, args, { detached: true, stdio: ['ignore', log, log], cwd });
  process.umask(umask);
  // at once, so that the server can be found again whatever happens to this process
  if (child.pid !== undefined) writePidFile(pidFile, child.pid);
  child.unref();
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error) => {
      reject(new StackError(`${file} does not run (${error.message}); check that it is a program for this machine.`));
    });
  });
}

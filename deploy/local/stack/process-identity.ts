import { readFileSync } from 'node:fs';

/**
 * Who a process is, beyond its pid: pids are handed out again, so a number in a file may name a stranger by now.
 * Pid, start time and boot together are unique.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks between boot and the start of the process: field 22 of /proc/<pid>/stat. */
  readonly startTicks: string;
  /** Changes at every boot of the machine; after one, pid and ticks can meet again. */
  readonly bootId: string;
}

interface ProcessStat {
  /** One letter; `Z` is dead and waiting for its parent, `T` is stopped by a signal. */
  readonly state: string;
  readonly startTicks: string;
}

/** The command name (field 2) may hold blanks and brackets, so counting starts behind the last bracket. */
export function parseStat(stat: string): ProcessStat | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]]; // fields 3 and 22
  return state === undefined || startTicks === undefined ? null : { state, startTicks };
}

/** @returns who has this pid now; null when nobody has, or only a dead process that was not buried yet */
export function identityOf(pid: number): ProcessIdentity | null {
  try {
    const stat = parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    if (stat === null || stat.state === 'Z') return null;
    return { pid, startTicks: stat.startTicks, bootId: bootId() };
  } catch {
    return null;
  }
}

/** True for a process that got SIGSTOP and no SIGCONT yet: alive, but deaf. */
export function isStopped(pid: number): boolean {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.state === 'T';
  } catch {
    return false;
  }
}

/** True while the very process that was noted down is alive. */
export function isAlive(noted: ProcessIdentity): boolean {
  const now = identityOf(noted.pid);
  return now !== null && now.startTicks === noted.startTicks && now.bootId === noted.bootId;
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

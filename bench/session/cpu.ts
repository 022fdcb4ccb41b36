import { readFileSync } from 'node:fs';

/** Linux counts CPU time for programs in hundredths of a second, whatever its own tick is. */
const TICKS_PER_SECOND = 100;

/** CPU seconds, all threads, user and system. */
export interface CpuTimes {
  readonly own: number;
  /** Of children that have ended and were waited for. */
  readonly children: number;
}

/** Reads the text of /proc/<pid>/stat. The name of a program may hold blanks and parentheses, so fields count from its end. */
export function parseStat(text: string): CpuTimes {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number): number => Number(fields[index]) / TICKS_PER_SECOND;
  return { own: seconds(11) + seconds(12), children: seconds(13) + seconds(14) };
}

/** @returns null when there is no such process */
export function cpuTimes(pid: number | 'self'): CpuTimes | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
}

/** Whole machine: seconds that its cores worked, and all seconds they had. Steal counts as had, not as worked. */
export function parseMachineStat(text: string): { busy: number; all: number } {
  const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = (
    text.split('\n')[0] ?? ''
  )
    .split(/\s+/)
    .slice(1)
    .map((ticks) => Number(ticks) / TICKS_PER_SECOND);
  const busy = user + nice + system + irq + softirq;
  return { busy, all: busy + idle + iowait + steal };
}

export const machineTimes = (): { busy: number; all: number } => parseMachineStat(readFileSync('/proc/stat', 'utf8'));

/** Resident memory in bytes; null when there is no such process. */
export function residentBytes(pid: number): number | null {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return line === null ? null : Number(line[1]) * 1024;
  } catch {
    return null;
  }
}

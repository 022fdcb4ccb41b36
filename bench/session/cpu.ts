import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Linux counts CPU time for programs in hundredths of a second, whatever its own tick is. */
const TICKS_PER_SECOND = 100;

/** CPU seconds of all threads, user and system. */
export interface CpuTimes {
  readonly own: number;
  /** CPU seconds of ended children that the process has waited for. */
  readonly children: number;
}

/**
 * Parses the text of /proc/<pid>/stat. The name of a program may contain blanks and parentheses, so fields are counted
 * after its end.
 */
function parseStat(text: string): CpuTimes {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number): number => Number(fields[index]) / TICKS_PER_SECOND;
  return { own: seconds(11) + seconds(12), children: seconds(13) + seconds(14) };
}

/** @returns null if there is no such process */
export function cpuTimes(pid: number | 'self'): CpuTimes | null {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
}

/** Sums up the seconds of all cores. Time that the hypervisor has stolen counts only in `all`. */
function parseMachineStat(text: string): { busy: number; all: number } {
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

/** Returns the resident memory in bytes, or null if there is no such process. */
export function residentBytes(pid: number): number | null {
  try {
    const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return line === null ? null : Number(line[1]) * 1024;
  } catch {
    return null;
  }
}

/** Work of the yardstick: about 100 ms. */
const YARDSTICK_ROUNDS = 50_000;

/**
 * Returns the CPU µs that one HMAC-SHA256 of a token takes right now. The speed of a virtual machine varies during the
 * day, so figures of two runs are comparable only if their yardsticks agree.
 */
export function yardstickMicros(): number {
  const text = 'x'.repeat(128);
  const sign = (): string =>
    createHmac('sha256', 'a secret of thirty-two bytes or so').update(text).digest('base64url');
  for (let round = 0; round < YARDSTICK_ROUNDS / 10; round++) sign(); // warms up the JIT
  const before = process.cpuUsage();
  for (let round = 0; round < YARDSTICK_ROUNDS; round++) sign();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / YARDSTICK_ROUNDS;
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1 ? (sorted[middle] as number) : mean(sorted.slice(middle - 1, middle + 1));
}

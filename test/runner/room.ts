import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 1_000;
/** Share of the last ten seconds, in percent, in which some process waited for a core. */
const PRESSURE_MAX = 60;

/**
 * Waits until the machine has room for another busy process, or until `signal` says that no other process of ours runs.
 */
export async function roomToRun(signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !hasRoom()) await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
}

function hasRoom(): boolean {
  const pressure = /some avg10=([\d.]+)/.exec(read('/proc/pressure/cpu') ?? '')?.[1];
  if (pressure !== undefined) return Number(pressure) < PRESSURE_MAX;
  const runnable = /\d+(?=\/)/.exec(read('/proc/loadavg') ?? '')?.[0]; // the kernel has no pressure figures
  return runnable === undefined || Number(runnable) < 2 * availableParallelism();
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

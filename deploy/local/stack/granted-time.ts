import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/**
 * Measures waits by the CPU time that the machine could give instead of wall-clock time. With ten processes per core,
 * a server that boots in six seconds alone needs a minute, so no fixed limit suits both. Between two readings, granted
 * time advances by
 *
 * elapsed × min(1, cores ÷ runnable) × speed of the machine
 *
 * where `runnable` counts the threads that run or wait for a core, averaged over a second. So a limit of 120 s is 120
 * s on a free machine and 480 s if four processes share each core. The factor never falls below a fifth: a wait of 120
 * s ends within ten minutes under any load.
 */
export class GrantedTime {
  readonly #machine: Machine;
  readonly #startedMs: number;
  #readMs: number;
  #runnable: number | null = null;
  #grantedMs = 0;

  constructor(machine: Machine = THIS_MACHINE) {
    this.#machine = machine;
    this.#startedMs = this.#readMs = machine.nowMs();
  }

  /** Returns wall-clock time since the start. */
  get elapsedMs(): number {
    return this.#machine.nowMs() - this.#startedMs;
  }

  /** Returns granted time since the start. */
  readMs(): number {
    const { cores, speed } = this.#machine;
    const nowMs = this.#machine.nowMs();
    const sinceMs = nowMs - this.#readMs;
    const runnable = this.#machine.runnable();
    const weight = 1 - Math.exp(-sinceMs / AVERAGED_OVER_MS);
    const average = (this.#runnable ??= runnable) + weight * (runnable - this.#runnable);
    this.#grantedMs += sinceMs * Math.max(FACTOR_MIN, Math.min(1, cores / average) * speed());
    [this.#runnable, this.#readMs] = [average, nowMs];
    return this.#grantedMs;
  }

  /** Returns the granted share of the time since the start: 1 if a core was always free. */
  get share(): number {
    const elapsedMs = this.elapsedMs;
    return elapsedMs === 0 ? 1 : this.readMs() / elapsedMs;
  }
}

/** The inputs of granted time. */
export interface Machine {
  readonly cores: number;
  nowMs(): number;
  /** Returns the processes that run or wait for a core, except the caller. */
  runnable(): number;
  /** Returns the speed relative to the machine on which the limits were chosen, at most 1. */
  speed(): number;
}

const AVERAGED_OVER_MS = 1_000;
const FACTOR_MIN = 0.2;

const THIS_MACHINE: Machine = {
  cores: availableParallelism(), // counts only the permitted cores of a pinned process
  nowMs: () => performance.now(),
  runnable: () => parseRunnable(readLoad()),
  speed: machineSpeed,
};

/**
 * @param load /proc/loadavg. Its fourth field counts the process that reads it, which does not compete while it waits
 */
function parseRunnable(load: string): number {
  return Math.max(1, Number(/(\d+)\/\d+ \d+$/.exec(load.trim())?.[1] ?? 1) - 1);
}

function readLoad(): string {
  try {
    return readFileSync('/proc/loadavg', 'utf8');
  } catch {
    return ''; // a sandbox without /proc: wall-clock time counts
  }
}

/** The first process of a run measures the speed. Its children read the speed here. */
const SPEED_ENV = 'SECKILL_MACHINE_SPEED';
const SPEED_MIN = 0.25;
/** Time for a chunk on the slow machine on which the limits were chosen. */
const REFERENCE_MS = 0.7;
const CHUNKS = 25;

/** @returns the speed of a core, from 0.25 to 1 */
function machineSpeed(): number {
  const known = Number(process.env[SPEED_ENV]);
  if (known > 0) return known;
  // the fastest chunk was not interrupted by another process
  const fastestMs = Math.min(...Array.from({ length: CHUNKS }, chunkMs));
  const speed = Math.min(1, Math.max(SPEED_MIN, REFERENCE_MS / fastestMs));
  process.env[SPEED_ENV] = speed.toFixed(2);
  return speed;
}

function chunkMs(): number {
  const startedMs = performance.now();
  for (let value = 1, left = 500_000; left > 0; left--) value = Math.imul(value ^ left, 0x01000193);
  return performance.now() - startedMs;
}

/**
 * Calls `late` after this much granted time, as a timer for work that may hang.
 * @returns a function that cancels the timer
 */
export function afterGranted(ms: number, late: () => void): () => void {
  const time = new GrantedTime();
  let timer: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    timer = setTimeout(
      () => {
        const remainingMs = ms - time.readMs();
        if (remainingMs > 0) wait(remainingMs);
        else late();
      },
      Math.min(leftMs, AVERAGED_OVER_MS),
    );
  };
  wait(ms);
  return () => clearTimeout(timer);
}

import { setTimeout as sleep } from 'node:timers/promises';
import { GrantedTime } from '../../../deploy/local/stack/granted-time.js';
import { waitUntil } from '../../../deploy/local/stack/probes.js';

/** Limit of each wait, in granted time. It is not a promise of the product: test/time measures promised times. */
export const GRANTED_MS = 120_000;
let usualMs = GRANTED_MS;

/** Shortens all waits of this process to this granted time. A planted bug often shows as an event that never comes. */
export const shortenWaits = (ms: number): void => void (usualMs = ms);

export interface Polls {
  /** Default: 50. */
  readonly everyMs?: number | undefined;
  /** Granted time for an event that takes longer than two minutes by design. */
  readonly grantedMs?: number | undefined;
}

/**
 * Waits until `check` returns true. An error of `check` counts as false.
 * @throws after two minutes of granted time, with the awaited event and the last error
 */
export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  { everyMs = 50, grantedMs = usualMs }: Polls = {},
): Promise<void> {
  if (grantedMs < usualMs) throw new Error(`a wait is never shorter than usual: ${what}`);
  const startedMs = performance.now();
  let last: unknown;
  const tolerant = async (): Promise<boolean> => {
    try {
      last = undefined;
      return await check();
    } catch (error) {
      last = error;
      return false;
    }
  };
  if (await waitUntil(tolerant, { timeoutMs: grantedMs, everyMs })) return;
  throw new Error(`not within ${Math.round((performance.now() - startedMs) / 1000)} s: ${what}`, { cause: last });
}

/** Reads repeatedly until there is a value. */
export async function found<T>(what: string, read: () => Promise<T | null | undefined>, polls?: Polls): Promise<T> {
  let value: T | null | undefined;
  await until(what, async () => ((value = await read()), value !== null && value !== undefined), polls);
  return value as T;
}

/** A clock of granted time for waits. */
export function grantedClock(): { nowMs(): number; sleep(ms: number): Promise<void> } {
  const time = new GrantedTime();
  return { nowMs: () => time.readMs(), sleep: (ms) => sleep(ms) };
}

/** Lets time pass in tests about time itself. Use `until` everywhere else. */
export const pause = (ms: number): Promise<void> => sleep(ms);

/** @returns how long the work took, in granted time, for limits that a busy machine must not break */
export async function grantedMsOf(work: () => unknown): Promise<number> {
  const time = new GrantedTime();
  const sampler = setInterval(() => time.readMs(), 100);
  try {
    await work();
    return time.readMs();
  } finally {
    clearInterval(sampler);
  }
}

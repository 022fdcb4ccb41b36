import { OperationalError, type Dependency } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { Faults } from './faults.js';
import type { Rng } from './rng.js';
import type { Scheduler } from './scheduler.js';

/** The parts of a run that a simulated process needs. */
export interface ProcessWorld {
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly rng: Rng;
  /** Calls that will act although their caller has given up. */
  readonly late: { requests: number };
  /** Null to format no lines. */
  readonly trace: ((who: string, line: string) => void) | null;
  /** Checks the promises. Must be called when a call has acted. */
  readonly acted: (call: string, args: readonly unknown[], value: unknown) => void;
}

/** Returns the error that the caller gets instead of an answer. @param neverActs the call did not act and never will */
export type LostAnswer = (neverActs: boolean) => unknown;

/** The signal of work that continues until its process dies. */
export const NEVER_ABORTED = new AbortController().signal;

const never = (): Promise<never> => new Promise(() => undefined);
/** Maximum delay of a call whose caller has given up: mostly short, or long, as at a hung server. */
const LATE_MAX_MS = [3_000, 3_000, 3_000, 30_000] as const;

/**
 * A process from its start to its death. Each of its calls to a server passes through `call`, where faults occur. After
 * its death no call acts and none returns.
 */
export class SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #world: ProcessWorld;
  readonly #deathListeners: (() => void)[] = [];
  #alive = true;
  #stalledUntilMs = 0;

  /** @param skewMs by how much the clock of this process is wrong */
  constructor(world: ProcessWorld, name: string, skewMs = 0) {
    this.#world = world;
    this.name = name;
    this.clock = {
      nowMs: () => world.scheduler.nowMs + skewMs,
      monotonicMs: () => world.scheduler.nowMs,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  onDeath(listener: () => void): void {
    this.#deathListeners.push(listener);
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const listener of this.#deathListeners) listener();
  }

  /** Makes one call, with the faults that occur in it. */
  async call<R>(
    dependency: Dependency,
    name: string,
    act: () => Promise<R>,
    args: readonly unknown[],
    lost?: LostAnswer,
  ): Promise<R> {
    if (!this.#alive) return never();
    const { faults } = this.#world;
    const fate = faults.fateOf(name);
    if (fate !== null) faults.note(fate, name);
    if (fate === 'crashed_before') return this.#crash(name, args, 'died before it');
    if (fate === 'stalled') this.#stall();
    const way = this.#way(name);
    if (way !== null) await way;
    if (!this.#alive) return never();
    if (faults.isAway(dependency, this.#world.scheduler.nowMs)) {
      faults.note('away', name);
      this.#trace(name, args, `${dependency} is away`);
      return answerLost(dependency, name, lost, true);
    }
    if (fate === 'failed') {
      this.#trace(name, args, 'failed');
      return answerLost(dependency, name, lost, true);
    }
    if (fate === 'late') {
      this.#trace(name, args, 'no answer yet');
      this.#actLater(name, act, args);
      return answerLost(dependency, name, lost, false);
    }
    const value = await act();
    this.#acted(name, args, value, fate);
    if (fate === 'crashed_after') return this.#crash(name, args, 'died after it');
    const back = this.#way(name);
    if (back !== null) await back;
    if (!this.#alive) return never();
    const cutOff = faults.isAway(dependency, this.#world.scheduler.nowMs);
    if (cutOff) faults.note('away', name);
    return cutOff || fate === 'reply_lost' ? answerLost(dependency, name, lost, false) : value;
  }

  #actLater<R>(name: string, act: () => Promise<R>, args: readonly unknown[]): void {
    const { rng, scheduler, late } = this.#world;
    late.requests++;
    scheduler.after(rng.range(1, rng.pick(LATE_MAX_MS)), () => {
      late.requests--;
      void act().then(
        (value) => this.#acted(name, args, value, 'late'),
        () => undefined, // its caller is gone
      );
    });
  }

  #acted(name: string, args: readonly unknown[], value: unknown, fate: string | null): void {
    if (this.#world.trace !== null) this.#trace(name, args, `${describe(value)}${fate === null ? '' : ` [${fate}]`}`);
    this.#world.faults.acted(name, this.#world.scheduler.nowMs);
    this.#world.acted(name, args, value);
  }

  /** Takes the time of the way to a server or back. A stalled process neither sends nor receives. */
  #way(name: string): Promise<void> | null {
    const { faults, scheduler } = this.#world;
    const delayMs = faults.delayMs();
    if (delayMs > 0) faults.note('delayed', name);
    const passMs = Math.max(delayMs, this.#stalledUntilMs - scheduler.nowMs);
    return passMs > 0 ? this.#pass(passMs) : null;
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.scheduler.after(ms, resolve));
  }

  #stall(): void {
    const { rng, scheduler } = this.#world;
    this.#stalledUntilMs = scheduler.nowMs + rng.range(200, 25_000);
    this.#world.trace?.(this.name, `is stalled for ${this.#stalledUntilMs - scheduler.nowMs} ms`);
  }

  #crash(name: string, args: readonly unknown[], how: string): Promise<never> {
    this.#trace(name, args, how);
    this.die();
    return never();
  }

  #sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    if (signal === undefined || signal === NEVER_ABORTED) {
      return new Promise((resolve) => void this.#world.scheduler.after(ms, () => this.#wake(resolve)));
    }
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener('abort', wake);
        timer.cancelled = true;
        this.#wake(resolve);
      };
      const timer = this.#world.scheduler.after(ms, wake);
      signal.addEventListener('abort', wake);
    });
  }

  #wake(resolve: () => void): void {
    if (!this.#alive) return;
    const leftMs = this.#stalledUntilMs - this.#world.scheduler.nowMs;
    if (leftMs > 0) this.#world.scheduler.after(leftMs, resolve);
    else resolve();
  }

  #trace(name: string, args: readonly unknown[], what: string): void {
    this.#world.trace?.(this.name, `${name}(${args.map(describe).join(', ')}) → ${what}`);
  }
}

function answerLost<R>(dependency: Dependency, name: string, lost: LostAnswer | undefined, neverActs: boolean): R {
  if (lost !== undefined) return lost(neverActs) as R;
  throw new OperationalError(dependency, `${name}: no answer`, { retryable: true });
}

const TEXT_MAX = 120;

/** Formats a value for a line of a trace. */
export function describe(value: unknown): string {
  if (value === undefined) return 'done';
  if (value instanceof Set) return describe([...value]);
  if (value instanceof Map) return describe(Object.fromEntries(value));
  if (typeof value === 'object' && value !== null && 'batchId' in value && 'purchases' in value) {
    const { batchId, purchases } = value as { batchId: string; purchases: { userId: string; requestId: string }[] };
    const keys = purchases.map(({ userId, requestId }) => `${userId}/${requestId}`).join(' ');
    return `batch ${batchId.slice(0, 4)} [${keys}]`;
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value, shortFields) ?? typeof value);
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text;
}

const shortFields = (name: string, value: unknown): unknown =>
  name === 'body' || name === 'saleId' || value instanceof AbortSignal ? undefined : value;

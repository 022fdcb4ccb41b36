import { OperationalError, type Dependency } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { Faults } from './faults.js';
import type { Rng } from './rng.js';
import type { Scheduler } from './scheduler.js';

/** What a life needs of its world. */
export interface LifeWorld {
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly rng: Rng;
  /** Requests that act although nobody waits for them any more. */
  readonly late: { requests: number };
  /** Null while nobody reads it: then no line is made. */
  readonly trace: ((who: string, line: string) => void) | null;
  /** A call has acted: the moment to look whether a promise is broken. */
  readonly acted: (call: string, args: readonly unknown[], value: unknown) => void;
}

/** What the caller hears in place of an answer. @param surely the call certainly did not act and never will */
export type Lost = (surely: boolean) => unknown;

/** For work that goes on until its process dies: a sleep need not listen to it. */
export const NEVER_ABORTED = new AbortController().signal;

const never = (): Promise<never> => new Promise(() => undefined);
/** A request on its way when its caller gives up acts so much later: mostly soon, or when a server that hung goes on. */
const LATE_MAX_MS = [3_000, 3_000, 3_000, 30_000] as const;

/**
 * One process from its start to its death. Everything it asks of the outside goes through `call`, so that a fault can
 * befall it there; once it is dead no call acts any more and none returns.
 */
export class Life {
  readonly name: string;
  readonly clock: Clock;
  readonly #world: LifeWorld;
  readonly #mourners: (() => void)[] = [];
  #alive = true;
  #stalledUntilMs = 0;

  /** @param skewMs how far the clock of this process is wrong */
  constructor(world: LifeWorld, name: string, skewMs = 0) {
    this.#world = world;
    this.name = name;
    this.clock = {
      nowMs: () => world.scheduler.nowMs + skewMs,
      sleep: (ms, signal) => this.#sleep(ms, signal),
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  onDeath(mourn: () => void): void {
    this.#mourners.push(mourn);
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    for (const mourn of this.#mourners) mourn();
  }

  /** Takes one call through what befalls it. */
  async call<R>(
    dependency: Dependency,
    name: string,
    act: () => Promise<R>,
    args: readonly unknown[],
    lost?: Lost,
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
      this.#tell(name, args, `${dependency} is away`);
      return answerLost(dependency, name, lost, true);
    }
    if (fate === 'failed') {
      this.#tell(name, args, 'failed');
      return answerLost(dependency, name, lost, true);
    }
    if (fate === 'late') {
      this.#tell(name, args, 'no answer yet');
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
        () => undefined, // nobody listens any more
      );
    });
  }

  #acted(name: string, args: readonly unknown[], value: unknown, fate: string | null): void {
    if (this.#world.trace !== null) this.#tell(name, args, `${describe(value)}${fate === null ? '' : ` [${fate}]`}`);
    this.#world.faults.acted(name, this.#world.scheduler.nowMs);
    this.#world.acted(name, args, value);
  }

  /** The way to a server, or back: it may take time, and a process that stands still neither sends nor hears. */
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
    this.#world.trace?.(this.name, `stands still for ${this.#stalledUntilMs - scheduler.nowMs} ms`);
  }

  #crash(name: string, args: readonly unknown[], how: string): Promise<never> {
    this.#tell(name, args, how);
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

  #tell(name: string, args: readonly unknown[], what: string): void {
    this.#world.trace?.(this.name, `${name}(${args.map(describe).join(', ')}) → ${what}`);
  }
}

function answerLost<R>(dependency: Dependency, name: string, lost: Lost | undefined, surely: boolean): R {
  if (lost !== undefined) return lost(surely) as R;
  throw new OperationalError(dependency, `${name}: no answer`, { retryable: true });
}

const TEXT_MAX = 120;

/** A value in a line of a trace. */
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

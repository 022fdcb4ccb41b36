import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import sinon from 'sinon';
import type { Rng } from './rng.js';
import type { Scheduler, Timer } from './scheduler.js';

/** Where time and randomness come from during a run. */
export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly rng: Rng;
  /** Must be called for an unhandled rejection. */
  readonly fail: (code: string, what: string) => void;
}

const realImmediate = setImmediate;
/**
 * Events per turn of the event loop. Node settles all promises between two events. Polling the sockets costs as much as
 * ten events.
 */
const EVENTS_PER_TURN = 64;

let surroundings: Surroundings | null = null;

/**
 * Simulates timers, `Date.now`, `Math.random` and `randomBytes` of this process during `run`. The clock port alone is
 * not enough for the batcher, the circuit breaker, the jitter and the batch ids.
 */
export async function inSimulatedTime<T>(run: () => Promise<T>): Promise<T> {
  const fakes = sinon.createSandbox();
  const { stackTraceLimit } = Error;
  const after = (delayMs: number, act: () => void): object => fakeTimer(here().scheduler.after(delayMs, act));
  const cancel = (timer: unknown): void => {
    if (timer instanceof FakeTimer) timer.cancel();
  };
  type Act = (...args: unknown[]) => void;
  const timers = {
    setTimeout: (act: Act, delayMs = 0, ...args: unknown[]) => after(delayMs, () => act(...args)),
    setImmediate: (act: Act, ...args: unknown[]) => after(0, () => act(...args)),
    setInterval: () => NO_TIMER, // only for the statistics of the circuit breaker, which nothing here reads
    clearTimeout: cancel,
    clearImmediate: cancel,
    clearInterval: cancel,
  };
  for (const [name, fake] of Object.entries(timers)) fakes.replace(globalThis, name as 'setTimeout', fake as never);
  fakes.replace(Date, 'now', () => here().scheduler.nowMs);
  fakes.replace(Math, 'random', () => here().rng.next());
  fakes.replace(crypto, 'randomBytes', seededBytes as never);
  syncBuiltinESMExports();
  const onDropped = (error: unknown): void => surroundings?.fail('BUG', `unhandled rejection: ${String(error)}`);
  process.on('unhandledRejection', onDropped);
  try {
    return await run();
  } finally {
    process.off('unhandledRejection', onDropped);
    fakes.restore();
    Error.stackTraceLimit = stackTraceLimit;
    syncBuiltinESMExports();
    surroundings = null;
  }
}

/** Runs the events of this world until `isOver`. Between two events, all promises settle. */
export function drive(world: Surroundings, isOver: () => boolean): Promise<void> {
  surroundings = world;
  return new Promise((resolve, reject) => {
    let ended = false;
    const step = (): void => {
      if (ended) return;
      try {
        ended = isOver();
        if (ended) resolve();
        else if (!world.scheduler.step()) throw new Error('no event is left');
      } catch (error) {
        ended = true;
        reject(error);
      }
    };
    const turn = (): void => {
      if (ended) return;
      for (let events = 0; events < EVENTS_PER_TURN; events++) realImmediate(step);
      realImmediate(turn);
    };
    turn();
  });
}

/** Starts the time of a world before its first event, because its constructors use its randomness. */
export function enter(world: Surroundings): void {
  surroundings = world;
}

function here(): Surroundings {
  if (surroundings === null) throw new Error('time was used outside a run');
  return surroundings;
}

function seededBytes(count: number): Buffer {
  const { rng } = here();
  const bytes = Buffer.allocUnsafe(count);
  for (let at = 0; at < count; at++) bytes[at] = rng.next() * 256;
  return bytes;
}

class FakeTimer {
  readonly #timer: Timer | null;

  constructor(timer: Timer | null) {
    this.#timer = timer;
  }

  cancel(): void {
    if (this.#timer !== null) this.#timer.cancelled = true;
  }

  unref(): this {
    return this;
  }
}

const fakeTimer = (timer: Timer): FakeTimer => new FakeTimer(timer);
const NO_TIMER = new FakeTimer(null);

import { median } from '../session/cpu.js';

/** What one layer costs, per request. Times in CPU µs; null: there is no such case. */
export interface LayerCost {
  readonly name: string;
  /** Of this process while the layer is off. */
  readonly offUs: number;
  /** Of this process while it is on and lets the request in. */
  readonly inUs: number | null;
  /** Of this process while it is on and refuses. */
  readonly refusedUs: number | null;
  /** Of Redis for a request that is let in; null: it is not asked. */
  readonly redisUs: number | null;
}

/** CPU per call. */
export interface Cost {
  /** Of this process. */
  readonly ownUs: number;
  /** Of Redis; null: not measured. */
  readonly redisUs: number | null;
}

/** CPU of Redis so far, in seconds. */
export type RedisCpu = () => Promise<number>;

/** One of these is the result, so that three lucky or unlucky rounds of five change nothing. */
const ROUNDS = 5;
const ROUND_MS = 200;
/** Calls between two looks at the clock: a look costs as much as a call that is off. */
const CALLS_PER_CLOCK_READ = 1000;
/** Requests under way at once where Redis is called, as in a rush. */
const UNDER_WAY = 1000;
const WARM_MS = 1000;

let sink: unknown = null;
/**
 * The last result. Exported, so that no engine may leave a call out of a loop because its result is unused.
 * @public
 */
export const lastAnswer = (): unknown => sink;

const ownMicros = (): number => {
  const { user, system } = process.cpuUsage();
  return user + system;
};

/** The median of several rounds of a call that answers at once. `place` counts the calls. */
export function costOfCall(call: (place: number) => unknown): number {
  const round = (): number => {
    const [before, endMs] = [ownMicros(), performance.now() + ROUND_MS];
    let calls = 0;
    while (performance.now() < endMs) {
      for (let i = 0; i < CALLS_PER_CLOCK_READ; i++) sink = call(calls++);
    }
    return (ownMicros() - before) / calls;
  };
  round(); // the JIT
  return median(Array.from({ length: ROUNDS }, round));
}

/** CPU per call that waits for something, with many calls under way, measured for `ms`. @throws what the call throws */
export async function costWhileConcurrent(
  call: (place: number) => Promise<unknown>,
  { ms, redisCpu = null }: { readonly ms: number; readonly redisCpu?: RedisCpu | null },
): Promise<Cost> {
  let place = 0;
  let calls = 0;
  let endMs = performance.now() + WARM_MS;
  const one = async (): Promise<void> => {
    while (performance.now() < endMs) {
      sink = await call(place++);
      calls++;
    }
  };
  const callAll = (): Promise<unknown> => Promise.all(Array.from({ length: UNDER_WAY }, one));
  await callAll();
  calls = 0;
  const redisBefore = (await redisCpu?.()) ?? 0;
  const before = ownMicros();
  endMs = performance.now() + ms;
  await callAll();
  const ownUs = (ownMicros() - before) / calls;
  const redisUs = redisCpu === null ? null : (((await redisCpu()) - redisBefore) * 1e6) / calls;
  return { ownUs, redisUs };
}

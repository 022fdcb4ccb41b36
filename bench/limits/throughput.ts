/** Before counting: connections, caches and JIT. */
const WARM_MS = 1000;

export interface ThroughputOptions {
  /** Steps under way at once. */
  readonly inFlight: number;
  /** Counted time. */
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/**
 * Repeats a step as fast as it goes.
 * @param step one unit of work; resolves to what it got done
 * @returns what was done per second, after a second of warm-up
 */
export async function throughput(
  { inFlight, seconds, signal }: ThroughputOptions,
  step: (place: number) => Promise<number>,
): Promise<number> {
  const countFromMs = performance.now() + WARM_MS;
  const endMs = countFromMs + seconds * 1000;
  let place = 0;
  let done = 0;
  const loop = async (): Promise<void> => {
    while (performance.now() < endMs) {
      signal.throwIfAborted();
      const work = await step(place++);
      const nowMs = performance.now();
      if (nowMs >= countFromMs && nowMs < endMs) done += work;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, loop));
  return done / seconds;
}

import type { Clock } from '../core/ports/clock.js';

/** The clock of this machine. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      signal?.addEventListener('abort', wake);
    }),
};

/** For lives and waits inside one process: it goes on evenly, whatever is done to the clock of the machine. */
export const steadyClock: Clock = {
  ...systemClock,
  nowMs: () => performance.timeOrigin + performance.now(),
};

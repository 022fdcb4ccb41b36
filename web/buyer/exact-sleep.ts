import { after } from '../../src/core/after.js';
import type { Browser } from './page.js';

/**
 * Sleeps with timers of the page. An exact sleep uses timers of a worker, which are not slowed down in the background.
 */
export function exactSleep(): Browser['sleep'] {
  const waiting = new Map<number, () => void>();
  let worker: Worker | null | undefined;
  let last = 0;
  const startWorker = (): Worker | null => {
    try {
      const started = new Worker(new URL('./background-timer.ts', import.meta.url), { type: 'module' });
      started.addEventListener('message', ({ data }: MessageEvent<number>) => waiting.get(data)?.());
      started.addEventListener('error', () => {
        worker = null; // the page's own timers still end the pending sleeps
      });
      return started;
    } catch {
      return null;
    }
  };
  return (ms, signal, exact = false) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const id = ++last;
      const end = after(ms, wake);
      signal.addEventListener('abort', wake);
      if (exact && document.visibilityState === 'hidden') {
        worker ??= startWorker();
        waiting.set(id, wake);
        worker?.postMessage({ id, ms });
      }
      function wake(): void {
        end();
        signal.removeEventListener('abort', wake);
        waiting.delete(id);
        resolve();
      }
    });
}

import { Session } from 'node:inspector/promises';
import { systemClock as clock } from './system-clock.js';

/** Of the heap one allocation in so many bytes is looked at. */
const HEAP_SAMPLE_BYTES = 32 * 1024;

/** Profiles of this process, one at a time: each costs it some percent of its CPU while it runs. */
export class Profiler {
  #busy = false;

  /**
   * @param kind `cpu`: where the time goes; `heap`: who allocated what is still in use at the end
   * @param signal ends it early; what was seen until then is returned
   * @returns JSON as the developer tools of Chrome read it, in a `.cpuprofile` or `.heapprofile` file; null: another one runs
   */
  async profile(kind: 'cpu' | 'heap', forMs: number, signal: AbortSignal): Promise<string | null> {
    if (this.#busy) return null;
    this.#busy = true;
    const session = new Session();
    try {
      session.connect();
      const wait = (): Promise<void> => clock.sleep(forMs, signal);
      return JSON.stringify(await (kind === 'cpu' ? cpuProfile(session, wait) : heapProfile(session, wait)));
    } finally {
      session.disconnect();
      this.#busy = false;
    }
  }
}

async function cpuProfile(session: Session, wait: () => Promise<void>): Promise<object> {
  await session.post('Profiler.enable');
  await session.post('Profiler.start');
  await wait();
  return (await session.post('Profiler.stop')).profile;
}

async function heapProfile(session: Session, wait: () => Promise<void>): Promise<object> {
  await session.post('HeapProfiler.startSampling', { samplingInterval: HEAP_SAMPLE_BYTES });
  await wait();
  return (await session.post('HeapProfiler.stopSampling')).profile;
}

import { Session } from 'node:inspector/promises';
import { systemClock as clock } from '../process/system-clock.js';

/** Average number of allocated bytes between two samples of the heap. */
const HEAP_SAMPLE_BYTES = 32 * 1024;

/** Profiles this process, one profile at a time. A running profile costs a few percent of CPU. */
export class Profiler {
  #busy = false;

  /** @param kind time spent (`cpu`) or live allocations (`heap`). @returns JSON for Chrome, or null if another runs */
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

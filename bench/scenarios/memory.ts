import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../statistics.js';
import { loadFigures, type LoadFigures } from '../results.js';
import { residentBytes } from '../session/cpu.js';
import { scrape, sumOf } from '../session/metrics.js';
import type { Session } from '../session/session.js';
import { BUYERS_PER_SECOND, secondsOf, type Context } from './context.js';
import { winLoad } from './win.js';

const SAMPLE_MS = 1000;
const MIB = 1024 ** 2;

interface MemorySample {
  /** Since the first sample, seconds. */
  readonly at: number;
  /** MiB. */
  readonly resident: number;
  readonly heap: number;
}

/** `win` for longer, with the memory of the api looked at each second: it must not grow with what was sold. */
export async function memory(context: Context): Promise<LoadFigures> {
  const seconds = secondsOf(context, 'memory');
  const watch = watchMemory(context.session);
  const load = { title: 'memory', seconds, perSecond: BUYERS_PER_SECOND.win };
  const { measured, books } = await winLoad(context, load).finally(() => watch.stop());
  const samples = watch.samples.filter(({ at }) => at <= seconds);
  const about = `win for ${seconds} s, ${samples.length} samples of the api`;
  const extra = { ...trend('rss', samples, 'resident', median), ...trend('heap floor', samples, 'heap', lowest) };
  return loadFigures('memory', about, { measured, books, per: 'accepted' }, extra);
}

const lowest = (values: readonly number[]): number => Math.min(...values);

/** The heap swings by what is not collected yet, so there the floor of a third says whether it keeps anything. */
function trend(
  name: string,
  samples: readonly MemorySample[],
  field: 'resident' | 'heap',
  typical: (values: readonly number[]) => number,
): Record<string, number> {
  const third = Math.max(1, Math.floor(samples.length / 3));
  const values = samples.map((sample) => sample[field]);
  return {
    [`${name} first third, MiB`]: typical(values.slice(0, third)),
    [`${name} last third, MiB`]: typical(values.slice(-third)),
  };
}

function watchMemory(session: Session): { readonly samples: readonly MemorySample[]; stop(): Promise<void> } {
  const samples: MemorySample[] = [];
  const stopping = new AbortController();
  const { pid, port } = session.program('api');
  const startedAt = performance.now();
  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const heap = sumOf(await scrape(port), 'nodejs_heap_size_used_bytes');
      const at = (performance.now() - startedAt) / 1000;
      samples.push({ at, resident: (residentBytes(pid) ?? 0) / MIB, heap: heap / MIB });
      await sleep(SAMPLE_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };
  const done = loop();
  done.catch(() => undefined); // told by stop
  return {
    samples,
    stop: async () => {
      stopping.abort();
      await done;
    },
  };
}

import type { Trace, Stage } from '../api/types.js';

export interface StageLine extends Stage {
  readonly atMs: number | null;
  readonly dueMs: number | null;
  /** Time since the last earlier stage that has a time. Null if either time is missing. */
  readonly afterMs: number | null;
  /** The next event happens at this stage. */
  readonly isNext: boolean;
}

/** Returns the stages with the time between them. */
export function stageLines(timeline: readonly Stage[]): StageLine[] {
  const next = timeline.find(({ state }) => state === 'waiting') ?? timeline.find(({ state }) => state === 'failed');
  let beforeMs: number | null = null;
  return timeline.map((stage) => {
    const atMs = msOf(stage.at);
    const afterMs = atMs === null || beforeMs === null ? null : atMs - beforeMs;
    if (atMs !== null) beforeMs = atMs;
    return { ...stage, atMs, dueMs: msOf(stage.dueAt), afterMs, isNext: stage === next };
  });
}

/** Returns the time from the first to the last known moment, ms, or null if fewer than two are known. */
export function tookMs(timeline: readonly Stage[]): number | null {
  const times = timeline.flatMap(({ at }) => msOf(at) ?? []);
  return times.length < 2 ? null : Math.max(...times) - Math.min(...times);
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'idle';

/** Returns how serious the current state of a purchase is. */
export function toneOfPurchase(state: string): Tone {
  switch (state) {
    case 'paid':
      return 'ok';
    case 'pending':
    case 'pending_payment':
    case 'refunding':
      return 'info';
    case 'parked':
    case 'stray':
    case 'unrecorded':
      return 'bad';
    case 'repairing':
    case 'disputed':
    case 'unknown':
      return 'warn';
    case 'failed':
      return 'bad';
    default:
      return 'idle';
  }
}

/** Returns the numbers of dead letters, orders and batches in the steps of a purchase, for links. */
export function namedIn({ steps }: Pick<Trace, 'steps'>): {
  readonly orderId: string | null;
  readonly batchId: string | null;
  readonly deadLetterIds: readonly string[];
} {
  const details = steps.map(({ detail }) => detail).join('\n');
  const first = (pattern: RegExp): string | null => pattern.exec(details)?.[1] ?? null;
  const letters = [...details.matchAll(/\bdead letter (\d+)/g)].map(([, id]) => id as string);
  const marker = steps.find(({ what }) => what === 'marker')?.detail.split(':')[0] ?? null;
  return {
    orderId: first(/\border (\d+)/),
    batchId: first(/\bbatch ([\w-]{10,64})/) ?? marker,
    deadLetterIds: [...new Set(letters)],
  };
}

const msOf = (iso: string | null): number | null => (iso === null ? null : Date.parse(iso));

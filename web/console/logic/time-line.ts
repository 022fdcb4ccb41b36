import type { Trace, Stage } from '../api/types.js';

/** One stage of a purchase, as the time line shows it. */
export interface StageLine extends Stage {
  readonly atMs: number | null;
  readonly dueMs: number | null;
  /** Since the stage before that has a time; null: one of the two has none. */
  readonly afterMs: number | null;
  /** What happens next happens here. */
  readonly isNext: boolean;
}

/** The stages with what lies between them. */
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

/** From its first to its last known moment, ms; null: fewer than two are known. */
export function tookMs(timeline: readonly Stage[]): number | null {
  const times = timeline.flatMap(({ at }) => msOf(at) ?? []);
  return times.length < 2 ? null : Math.max(...times) - Math.min(...times);
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'idle';

/** How serious the place is where a purchase stands. */
export function toneOfPurchase(state: string): Tone {
  switch (state) {
    case 'paid':
      return 'ok';
    case 'pending':
    case 'pending_payment':
      return 'info';
    case 'parked':
    case 'stray':
    case 'unrecorded':
      return 'bad';
    case 'repairing':
    case 'unknown':
      return 'warn';
    case 'failed':
      return 'bad';
    default:
      return 'idle';
  }
}

/** Numbers of dead letters, orders and batches that the steps of a purchase name, for links. */
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

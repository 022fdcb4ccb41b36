import { sliceAt, WINDOW_SLICES, type WindowFigures } from '../../core/limits.js';

/** The visits of one subject, slice by slice. */
export interface Counts {
  /** The slice of `bySlice[0]`; the others are those before it. */
  readonly slice: number;
  readonly bySlice: number[];
  total: number;
}

/**
 * The sliding window of lua/take-permits-5.lua in one process: every visit of the last `windowMs` counts, and some that are up
 * to a tenth older. Two generations of subjects take turns, each as long as the window: who has not come for two of them
 * is forgotten, with all others of his generation at once.
 */
export class SlidingWindow {
  readonly windowMs: number;
  #generation = -1;
  #current = new Map<string, Counts>();
  #previous = new Map<string, Counts>();

  constructor(windowMs: number) {
    this.windowMs = windowMs;
  }

  /** Subjects that are kept. */
  get size(): number {
    return this.#current.size + this.#previous.size;
  }

  /**
   * How a subject stands; null: `subjectsMax` others are counted, he is not.
   * @param nowUs whole microseconds
   */
  find(subject: string, subjectsMax: number, nowUs: number): Counts | null {
    const slice = sliceAt(nowUs, this.windowMs);
    this.#turn(Math.floor(slice / WINDOW_SLICES));
    const known = this.#current.get(subject);
    if (known === undefined && this.#current.size >= subjectsMax) return null;
    return countsAt(slice, known ?? this.#previous.get(subject));
  }

  /** Counts one more visit of a subject as it was just found. */
  add(subject: string, counts: Counts): void {
    counts.bySlice[0] = (counts.bySlice[0] ?? 0) + 1;
    counts.total++;
    this.#current.set(subject, counts);
  }

  #turn(generation: number): void {
    if (generation === this.#generation) return;
    this.#previous = generation === this.#generation + 1 ? this.#current : new Map();
    this.#current = new Map();
    this.#generation = generation;
  }
}

/** What a limit of so many visits makes of what was counted. */
export function figuresOf({ bySlice, total }: Counts, limit: number): WindowFigures {
  return { left: Math.max(0, limit - total), oldestBack: bySlice.findLastIndex((count) => count > 0) };
}

/** What was counted, moved to the slice that runs now. */
function countsAt(slice: number, known: Counts | undefined): Counts {
  const bySlice = new Array<number>(WINDOW_SLICES + 1).fill(0);
  let total = 0;
  if (known !== undefined) {
    for (let back = 0; back <= WINDOW_SLICES; back++) {
      const count = known.bySlice[back - slice + known.slice] ?? 0;
      bySlice[back] = count;
      total += count;
    }
  }
  return { slice, bySlice, total };
}

import { simulateSeeds } from './run.js';
import type { Tally } from './tally.js';

/** A part of many runs, for a process of its own. */
export interface Part {
  readonly from: number;
  readonly runs: number;
}

/** What a child says at the end of its part. */
export interface PartDone {
  readonly part: Part;
  readonly tally: Tally;
}

process.on('message', (part: Part) => {
  void simulateSeeds(part.from, part.runs).then((tally) => process.send?.({ part, tally } satisfies PartDone));
});

import { simulateSeeds } from './run.js';
import type { Tally } from './tally.js';

/** A range of seeds that one child process simulates. */
export interface Part {
  readonly from: number;
  readonly runs: number;
}

/** Message from the child at the end of its part. */
export interface PartDone {
  readonly part: Part;
  readonly tally: Tally;
}

process.on('message', (part: Part) => {
  void simulateSeeds(part.from, part.runs).then((tally) => process.send?.({ part, tally } satisfies PartDone));
});

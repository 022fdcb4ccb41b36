/** The first bucket ends here, and each one ends a quarter of an octave above the one before. */
const FIRST_EDGE_MS = 0.25;
const PER_OCTAVE = 4;
/** 0.25 ms to 65 s; what is slower counts in the last one. */
const OCTAVES = 18;

export const BUCKETS = OCTAVES * PER_OCTAVE + 1;
/** A quantile is told too high by this factor at the most, never too low. */
export const EDGE_FACTOR = 2 ** (1 / PER_OCTAVE);
export const LAST_EDGE_MS = FIRST_EDGE_MS * 2 ** OCTAVES;

export const bucketOf = (latencyMs: number): number => {
  if (!(latencyMs > FIRST_EDGE_MS)) return 0;
  return Math.min(BUCKETS - 1, Math.ceil(PER_OCTAVE * Math.log2(latencyMs / FIRST_EDGE_MS)));
};

/** @returns the upper edge of the bucket in which the quantile lies, ms; 0 without any call */
export function quantileMs(counts: Uint32Array, calls: number, quantile: number): number {
  if (calls === 0) return 0;
  const rank = Math.ceil(quantile * calls);
  let seen = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    seen += counts[bucket] as number;
    if (seen >= rank) return FIRST_EDGE_MS * 2 ** (bucket / PER_OCTAVE);
  }
  return LAST_EDGE_MS;
}

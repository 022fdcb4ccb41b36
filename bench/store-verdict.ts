import type { SaleCheck } from '../test/invariants/check-sale.js';

/** What the books say after a scenario, beside what its buyers heard. */
export interface StoreVerdict {
  /** Answers 2xx, as the load generator counted them. */
  readonly accepted: number;
  /** Live rows in MySQL. */
  readonly landed: number;
  readonly oversold: number;
  readonly duplicates: number;
  readonly lost: number;
  /** stock − sold − units left: 0 when no unit is in neither book. */
  readonly difference: number;
  /** Why the scenario fails; empty when all is right. */
  readonly problems: readonly string[];
}

/** More would only repeat the first ones. */
const PROBLEMS_MAX = 10;

/**
 * Judges a sale at rest.
 * @param heard `accepted`: answers 2xx of all loads on this sale; `unanswered`: requests without an answer, which may
 *   or may not have become orders
 */
export function judgeBooks(
  heard: { readonly accepted: number; readonly unanswered: number },
  { figures, findings }: SaleCheck,
): StoreVerdict {
  const { liveRows, failedRows, oversold, duplicates, difference, pendingBatches } = figures;
  const missing = Math.max(0, heard.accepted - liveRows);
  const lost = Math.max(figures.lost, missing);
  const untold = liveRows - heard.accepted - heard.unanswered;
  const problems = [
    oversold > 0 && `${oversold} units were sold that did not exist`,
    duplicates > 0 && `${duplicates} purchases have more than one row`,
    lost > 0 && `${lost} accepted purchases have no order`,
    difference !== 0 && `${difference} units are in neither book`,
    failedRows > 0 && `${failedRows} accepted purchases ended failed`,
    untold > 0 && `${untold} orders belong to nobody who heard yes`,
    pendingBatches > 0 && `${pendingBatches} batches are still pending`,
    ...findings.map(({ invariant, detail }) => `${invariant}: ${detail}`),
  ].filter((problem) => problem !== false);
  return {
    accepted: heard.accepted,
    landed: liveRows,
    oversold,
    duplicates,
    lost,
    difference,
    problems: problems.slice(0, PROBLEMS_MAX),
  };
}

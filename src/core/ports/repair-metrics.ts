/** How one try to repair a sale ended. */
export type RepairResultWord = 'repaired' | 'busy' | 'superseded' | 'failed';

/** What the keeper counts of repairs. */
export interface RepairMetrics {
  /** @param tookMs from its first command to its last */
  repairTried(result: RepairResultWord, tookMs: number): void;
  /** Sales that nobody can buy from, or settle in, until they are repaired; live ones, and closed ones. */
  salesShut(live: number, closed: number): void;
}

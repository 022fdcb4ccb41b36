/** What the entry counts. Words of the rules only: no buyer, no sale, no address. */
export interface AdmissionMetrics {
  /** A layer said no. In `dry_run` the visit went on all the same. */
  refused(layer: string, word: string, mode: 'dry_run' | 'on'): void;
  /** These rules are in force in this process from now on. */
  rulesTaken(version: number): void;
  /** A version of the rules was not fit to be taken; what was in force stays. */
  rulesRefused(): void;
}

/** For tests and tools that count nothing. */
export const noAdmissionMetrics: AdmissionMetrics = {
  refused: () => undefined,
  rulesTaken: () => undefined,
  rulesRefused: () => undefined,
};

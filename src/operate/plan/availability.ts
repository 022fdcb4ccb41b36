/** A fault after which buyers get 503 for a while. */
export interface Fault {
  readonly fault: string;
  /** How long buyers get 503, in seconds. */
  readonly gapS: number;
  /** Where the gap was measured, or `assumed`. */
  readonly source: string;
  /** Assumed number per year. */
  readonly perYear: number;
}

export const OBJECTIVES = { today: 0.9995, next: 0.9999 } as const;

const CHAOS = 'bench/chaos-report.md';

/** Faults at a single site where each server has a replica. */
export const FAULTS: readonly Fault[] = [
  { fault: 'an api, worker or keeper dies or restarts', gapS: 0.9, source: `${CHAOS}, T13/term`, perYear: 100 },
  { fault: 'MySQL dies: orders are late, buyers still win', gapS: 0, source: 'docs/durability.md', perYear: 4 },
  { fault: 'a Redis server restarts with its log', gapS: 3.9, source: `${CHAOS}, R1`, perYear: 12 },
  { fault: 'Redis fails over: detection', gapS: 10, source: 'assumed', perYear: 4 },
  { fault: 'Redis fails over: the rebuild', gapS: 5.9, source: `${CHAOS}, R7`, perYear: 4 },
  { fault: 'broker and proxy die', gapS: 8.9, source: `${CHAOS}, M2`, perYear: 12 },
  { fault: 'a hot sale is split', gapS: 1.5, source: 'bench/README.md, reshard', perYear: 12 },
  { fault: 'the site loses power or network', gapS: 1800, source: 'assumed', perYear: 2 },
  { fault: 'a wrong change by an operator', gapS: 900, source: 'assumed', perYear: 4 },
];

const MINUTES_PER_MONTH = (365.25 * 24 * 60) / 12;

export const minutesPerMonth = ({ gapS, perYear }: Fault): number => (gapS * perYear) / 60 / 12;

export const minutesInAll = (): number => FAULTS.reduce((sum, fault) => sum + minutesPerMonth(fault), 0);

/** Returns for how many minutes per month an objective allows buyers to get 503. */
export const allowedMinutes = (objective: number): number => (1 - objective) * MINUTES_PER_MONTH;

import type { ScenarioContext, ScenarioRules } from './context.js';

/** A fault of docs/fault-matrix.md, caused on real servers and programs. */
export interface Scenario extends ScenarioRules {
  /** Names the fault, then what must hold. Starts in lower case, without the id. */
  readonly title: string;
  /** Further ids of the fault matrix that this scenario covers. */
  readonly also?: readonly string[];
  /** Takes at most some tens of seconds, so that `npm test` runs it once. */
  readonly fast?: boolean;
  /**
   * The order and time of check-backs matter, so the runner first makes the broker give up half messages of earlier
   * scenarios. These 20 s do not count.
   */
  readonly drainFirst?: boolean;
  /** A sentence that says why it cannot run on this machine, or null. */
  readonly skip?: () => string | null;
  /** Limit of `run`, in ms; default 180,000. */
  readonly timeoutMs?: number;
  /** Causes the fault, proves it (`context.observed`), and says when it is over (`context.faultEnded`). */
  run(context: ScenarioContext): Promise<void>;
}

/** Returns the id in the fault matrix: `T3` for `T3/after_deduct`. */
export const idOf = ({ name }: Pick<Scenario, 'name'>): string => name.split('/')[0] as string;

/** Returns every id of the fault matrix that a scenario covers. */
export const idsOf = (scenario: Pick<Scenario, 'name' | 'also'>): readonly string[] => [
  idOf(scenario),
  ...(scenario.also ?? []),
];

/**
 * Selects the named scenarios: by id (`T3`, with its variants), by name (`T3/after_deduct`) or by group (`T`). Selects
 * all without a name.
 * @returns the scenarios in the order of the fault matrix, and the words that match none
 */
export function chooseScenarios(
  scenarios: readonly Scenario[],
  wanted: readonly string[],
): { readonly chosen: readonly Scenario[]; readonly unknown: readonly string[] } {
  if (wanted.length === 0) return { chosen: scenarios, unknown: [] };
  const matches = (scenario: Scenario, text: string): boolean => {
    const low = text.toLowerCase();
    if (scenario.name.toLowerCase() === low) return true;
    return idsOf(scenario).some((id) => id.toLowerCase() === low || id[0]?.toLowerCase() === low);
  };
  return {
    chosen: scenarios.filter((scenario) => wanted.some((text) => matches(scenario, text))),
    unknown: wanted.filter((text) => !scenarios.some((scenario) => matches(scenario, text))),
  };
}

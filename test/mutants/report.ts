import type { Mutant } from './mutants.js';

/**
 * - `caught`: it was noticed, for the right reason
 * - `missed`: nothing was noticed
 * - `unproven`: a scenario is red for another reason, or could not run here
 */
type Verdict = 'caught' | 'missed' | 'unproven';

export interface MutantResult {
  readonly mutant: Mutant;
  readonly by: 'simulation' | 'chaos';
  readonly verdict: Verdict;
  /** The scenario that decided, or for the simulation the promise that was broken. */
  readonly where: string;
  readonly seed: number | null;
  /** Reason and findings. Empty if nothing was noticed. */
  readonly said: string;
  readonly tookMs: number;
  /** The last lines of the logs of a scenario's programs. */
  readonly logs: string;
}

/** Characters of the reason that are shown. */
const SAID_SHOWN = 300;

/** Returns the part of the reason that proves the mutant, and as much other text as fits. */
export function saidShown({ mutant, by, said }: MutantResult): string {
  const at = by === 'chaos' ? said.search(mutant.chaos?.says ?? '') : 0;
  const from = at < SAID_SHOWN / 2 ? 0 : at;
  const part = said.slice(from, from + SAID_SHOWN).replace(/\s+/g, ' ');
  return `${from > 0 ? '… ' : ''}${part}${from + SAID_SHOWN < said.length ? ' …' : ''}`;
}

/** Returns `15 of 15 planted bugs were caught`, and the names of missed bugs. */
export function totalLine(results: readonly MutantResult[]): string {
  const others = results.filter(({ verdict }) => verdict !== 'caught');
  const caught = `${results.length - others.length} of ${results.length} planted bugs were caught`;
  return [caught, ...others.map(({ mutant, by, verdict }) => `${mutant.name} ${verdict} by ${by}`)].join('; ');
}

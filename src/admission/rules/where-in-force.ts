import type { Clock } from '../../core/ports/clock.js';
import type { RuleReport, RuleReports } from '../../core/ports/rules.js';

const POLL_MS = 100;

export const IN_FORCE = ['everywhere', 'not_everywhere', 'nowhere'] as const;

/**
 * Where one version of the rules is in force.
 * - `everywhere`: every api that reports follows it, or a newer one
 * - `not_everywhere`: some do not
 * - `nowhere`: no api reports
 */
export interface WhereInForce {
  readonly inForce: (typeof IN_FORCE)[number];
  readonly version: number;
  /** Those that do not follow it first. */
  readonly apis: readonly (RuleReport & { readonly follows: boolean })[];
}

/**
 * Asks the apis which rules they follow, until all follow this version, or none that does not can any more, or the time is
 * over. An api that died without a word is counted for some seconds.
 * @param waitMs 0 asks once
 * @throws OperationalError redis
 */
export async function whereInForce(
  version: number,
  { reports, clock }: { readonly reports: RuleReports; readonly clock: Clock },
  waitMs: number,
): Promise<WhereInForce> {
  const untilMs = clock.monotonicMs() + waitMs;
  for (;;) {
    const found = judgeInForce(version, await reports.live());
    const mayChange =
      found.inForce === 'nowhere' || found.apis.some((api) => !api.follows && !hasRefused(api, version));
    if (found.inForce === 'everywhere' || !mayChange || clock.monotonicMs() >= untilMs) return found;
    await clock.sleep(POLL_MS);
  }
}

/** Where it is in force, by these reports. */
export function judgeInForce(version: number, reports: readonly RuleReport[]): WhereInForce {
  const apis = reports
    .map((report) => ({ ...report, follows: report.version !== null && report.version >= version }))
    .sort((a, b) => Number(a.follows) - Number(b.follows) || a.host.localeCompare(b.host) || a.pid - b.pid);
  if (apis.length === 0) return { inForce: 'nowhere', version, apis };
  return { inForce: apis.every(({ follows }) => follows) ? 'everywhere' : 'not_everywhere', version, apis };
}

const hasRefused = ({ refused }: RuleReport, version: number): boolean =>
  refused !== null && refused.version >= version;

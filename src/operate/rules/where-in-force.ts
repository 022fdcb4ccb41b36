import type { RulesStatus } from '../../contract/rules.js';
import type { Clock } from '../../core/ports/clock.js';
import type { RuleReport, RuleReports } from '../../core/ports/rules.js';

const POLL_MS = 100;

/**
 * Where a version of the rules is in force.
 * - `everywhere`: every api that reports follows this version or a newer version
 * - `not_everywhere`: some apis do not
 * - `nowhere`: no api reports
 */
export interface WhereInForce {
  readonly inForce: RulesStatus['inForce'];
  readonly version: number;
  /** The apis, starting with those not following this version. */
  readonly apis: readonly (RuleReport & { readonly follows: boolean })[];
}

/**
 * Asks the apis which rules they follow, until all follow this version, or no other api can follow it any more, or the
 * time is over. An api that died silently is counted for some seconds.
 * @param waitMs 0 asks once
 * @throws OperationalError redis
 */
export async function whereInForce(
  version: number,
  { reports, clock }: { readonly reports: Pick<RuleReports, 'live'>; readonly clock: Clock },
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

/** Judges from these reports where the version is in force. */
export function judgeInForce(version: number, reports: readonly RuleReport[]): WhereInForce {
  const apis = reports
    .map((report) => ({ ...report, follows: report.version !== null && report.version >= version }))
    .sort((a, b) => Number(a.follows) - Number(b.follows) || a.host.localeCompare(b.host) || a.pid - b.pid);
  if (apis.length === 0) return { inForce: 'nowhere', version, apis };
  return { inForce: apis.every(({ follows }) => follows) ? 'everywhere' : 'not_everywhere', version, apis };
}

const hasRefused = ({ refused }: RuleReport, version: number): boolean =>
  refused !== null && refused.version >= version;

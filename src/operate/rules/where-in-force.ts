import type { RulesStatus } from '../../contract/rules.js';
import { OperationalError } from '../../core/errors.js';
import type { Clock } from '../../core/ports/clock.js';
import type { RuleReport, RuleReports } from '../../core/ports/rules.js';
import { CliError } from '../../process/cli-error.js';
import { parseWhole } from '../../process/options.js';
import { inLine } from '../../process/print.js';
import { systemClock } from '../../process/system-clock.js';

const POLL_MS = 100;

/** `everywhere`: every api that reports follows this version or a newer one. `nowhere`: no api reports. */
export interface WhereInForce {
  readonly inForce: RulesStatus['inForce'];
  readonly version: number;
  /** The apis, starting with those not following this version. */
  readonly apis: readonly (RuleReport & { readonly follows: boolean })[];
}

/**
 * Asks until all apis follow, none can follow any more, or time is over.
 * @param waitMs 0 asks once.
 * @throws OperationalError
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

export function judgeInForce(version: number, reports: readonly RuleReport[]): WhereInForce {
  const apis = reports
    .map((report) => ({ ...report, follows: report.version !== null && report.version >= version }))
    .sort((a, b) => Number(a.follows) - Number(b.follows) || a.host.localeCompare(b.host) || a.pid - b.pid);
  if (apis.length === 0) return { inForce: 'nowhere', version, apis };
  return { inForce: apis.every(({ follows }) => follows) ? 'everywhere' : 'not_everywhere', version, apis };
}

const hasRefused = ({ refused }: RuleReport, version: number): boolean =>
  refused !== null && refused.version >= version;

export const rulesInForceBody = ({ inForce, version, apis }: WhereInForce): Omit<RulesStatus, 'canary'> => ({
  version,
  inForce,
  apis: apis.map(({ host, pid, version, follows, refused }) => ({ host, pid, version, follows, refused })),
});

/** Longer than an api needs to follow new rules, and longer than a dead api still counts as running. */
const WAIT_DEFAULT_S = 5;
const WAIT_MAX_S = 3600;

export const WAIT_OPTION = [
  '--wait <seconds>',
  'time for all apis to follow; 0 does not check them',
  parseWhole(0, WAIT_MAX_S),
  WAIT_DEFAULT_S,
] as const;

/** Which apis follow a version, as far as the command could find out. */
export type Found =
  | WhereInForce
  | { readonly inForce: 'unknown'; readonly version: number; readonly why: string }
  | { readonly inForce: 'not_asked'; readonly version: number };

/** @param waitS 0 skips the question */
export async function findInForce(reports: Pick<RuleReports, 'live'>, version: number, waitS: number): Promise<Found> {
  if (waitS === 0) return { inForce: 'not_asked', version };
  try {
    return await whereInForce(version, { reports, clock: systemClock }, waitS * 1000);
  } catch (error) {
    if (!(error instanceof OperationalError)) throw error;
    return { inForce: 'unknown', version, why: error.message };
  }
}

/** Returns the fields that a program may add to a line of JSON. */
export const inForceFields = (found: Found): object => ('apis' in found ? rulesInForceBody(found) : found);

/** @returns one sentence. @throws CliError when the version is not known to be in force in every api */
export function inForceSentence(found: Found): string {
  const { version } = found;
  switch (found.inForce) {
    case 'everywhere':
      return found.apis.length === 1
        ? `Version ${version} is in force in the only running api.`
        : `Version ${version} is in force in all ${found.apis.length} apis.`;
    case 'not_asked':
      return `Version ${version} is published; \`seckill rules status\` says where it is in force.`;
    case 'nowhere':
      throw new CliError(
        `version ${version} is published, but in force nowhere, because no api reports that it runs. An api loads the newest ` +
          'rules before it admits buyers.',
      );
    case 'unknown':
      throw new CliError(
        inLine(
          `version ${version} is published, but this command cannot tell where it is in force: ${found.why}. Every api reads it from MySQL.`,
        ),
      );
    case 'not_everywhere': {
      const lines = found.apis.map((api) => `  ${apiLine(api, version)}`);
      throw new CliError(
        [`version ${version} is published, but not in force everywhere:`, ...lines].map(inLine).join('\n'),
      );
    }
  }
}

function apiLine({ host, pid, version, refused, follows }: WhereInForce['apis'][number], wanted: number): string {
  const name = `${host} pid ${pid}`;
  if (follows) return `${name}  follows it`;
  const instead = version === null ? 'admits no buyer' : `follows version ${version}`;
  if (refused === null || refused.version < wanted) return `${name}  ${instead}`;
  return `${name}  ${instead}, and cannot use ${refused.version}: ${refused.reasons.join('; ')}`;
}

import { whereInForce, type WhereInForce } from './where-in-force.js';
import { OperationalError } from '../../core/errors.js';
import { rulesInForceBody } from './routes.js';
import type { RuleServices } from './services.js';
import { systemClock as clock } from '../../process/system-clock.js';
import { CliError } from '../../process/cli-error.js';
import { parseWhole } from '../../process/options.js';
import { inLine } from '../../process/print.js';

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

/** Asks the apis which version they follow. @param waitS 0 skips the question */
export async function findInForce(
  reports: RuleServices['ruleReports'],
  version: number,
  waitS: number,
): Promise<Found> {
  if (waitS === 0) return { inForce: 'not_asked', version };
  try {
    return await whereInForce(version, { reports, clock }, waitS * 1000);
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

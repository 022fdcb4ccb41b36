import type { Dependency } from '../../core/errors.js';
import { DEPENDENCIES } from '../dependencies.js';
import type { Endpoint } from '../endpoint.js';
import type { DegradeRules } from './degrade-rules.js';
import { isBelow, LEVELS, type Level } from './level.js';
import { percentileOf } from './percentile.js';

export interface Ruling {
  readonly level: Level;
  /** A breaker asks for it, so what is behind the answer must not be called. */
  readonly sparesSource: boolean;
}

/** All that there are: a request makes none. */
const rulingsOf = (sparesSource: boolean): Readonly<Record<Level, Ruling>> =>
  Object.fromEntries(LEVELS.map((level) => [level, Object.freeze({ level, sparesSource })])) as Record<Level, Ruling>;
const BY_SWITCH = rulingsOf(false);
const BY_BREAKER = rulingsOf(true);

/**
 * The level of one request: what the operator has switched for this user, or what an open breaker asks for if that is
 * less of an answer. Breakers are asked only where it matters, since a question may take a place of a trial.
 * @param who the user, or the client address of somebody who is not signed in
 */
export function rulingFor(
  { switches, asked }: Pick<DegradeRules, 'switches' | 'asked'>,
  endpoint: Endpoint,
  who: string,
  refuses: (dependency: Dependency) => boolean,
): Ruling {
  let level = switchedFor(switches[endpoint], who);
  let sparesSource = false;
  for (const dependency of DEPENDENCIES) {
    if (level === 'L4') break;
    const wanted = asked[dependency][endpoint];
    const matters = isBelow(wanted, level) || (wanted !== 'L0' && !sparesSource);
    if (!matters || !refuses(dependency)) continue;
    sparesSource = true;
    if (isBelow(wanted, level)) level = wanted;
  }
  return sparesSource ? BY_BREAKER[level] : BY_SWITCH[level];
}

function switchedFor({ level, percent }: DegradeRules['switches'][Endpoint], who: string): Level {
  if (level === 'L0' || percent >= 100) return level;
  return percentileOf(who) < percent ? level : 'L0';
}

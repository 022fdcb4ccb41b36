import { steadyClock } from '../../src/programs/system-clock.js';
import { breakerRules, type BreakerRules, DEPENDENCIES } from '../../src/admission/breaker/breaker-rules.js';
import { REPORT_TIMES, SharedBreakers } from '../../src/admission/breaker/shared-breakers.js';
import { Degrade, degradeRules, type DegradeRules } from '../../src/admission/degrade/degrade.js';
import type { BreakerStore } from '../../src/core/ports/admission-stores.js';
import { noAdmissionMetrics as metrics } from '../../test/helpers/no-admission-metrics.js';
import { silentLog } from '../../test/helpers/silent-log.js';
import { costOfCall, costOfCrowd, type LayerCost } from './cost.js';

const NO_STORE: BreakerStore = { exchange: () => Promise.resolve([]), withdraw: () => Promise.resolve() };
function breakers(rules: BreakerRules): SharedBreakers {
  const ports = { store: NO_STORE, clock: steadyClock, random: Math.random, metrics, log: silentLog };
  return new SharedBreakers({ rules: () => rules, ...ports }, { processId: 'bench', ...REPORT_TIMES });
}

const rulesOf = (mode: BreakerRules['mode']): BreakerRules => breakerRules.parse({ mode });
/** Neither slow nor failing, so that the breaker stays closed. */
const DONE = Promise.resolve();
const call = (): Promise<void> => DONE;

/** The breakers: called once per request, and around each call to a dependency. A batch is one such call for many purchases. */
export async function breakerCosts({ ms }: { readonly ms: number }): Promise<LayerCost[]> {
  const [off, on] = [breakers(rulesOf('off')), breakers(rulesOf('on'))];
  const asks = (one: SharedBreakers) => () => DEPENDENCIES.some((dependency) => one.refuses(dependency));
  const watches = (one: SharedBreakers) => () => one.watch('redis', call);
  const [watchedOff, watchedOn] = [await costOfCrowd(watches(off), { ms }), await costOfCrowd(watches(on), { ms })];
  const none = { refusedUs: null, redisUs: null };
  return [
    { name: 'breaker, asked for all three', offUs: costOfCall(asks(off)), inUs: costOfCall(asks(on)), ...none },
    { name: 'breaker, a call watched', offUs: watchedOff.ownUs, inUs: watchedOn.ownUs, ...none },
  ];
}

/** The level of a purchase: everything in order, with the breakers asked; and switched off. */
export function degradeCost(): LayerCost {
  const closed = breakers(rulesOf('on'));
  const levels = (rules: DegradeRules) => {
    const refuses = closed.refuses.bind(closed);
    const degrade = new Degrade({ rules: () => rules, refuses, metrics });
    return (place: number) => degrade.rulingOf('purchase', USERS[place & (USERS.length - 1)] as string);
  };
  const switched = { purchase: { level: 'L4', percent: 50 } };
  return {
    name: 'degradation, breakers closed',
    offUs: costOfCall(levels(degradeRules.parse({}))),
    inUs: costOfCall(levels(degradeRules.parse({ mode: 'on' }))),
    refusedUs: costOfCall(levels(degradeRules.parse({ mode: 'on', switches: switched }))),
    redisUs: null,
  };
}

const USERS = Array.from({ length: 1024 }, (_, place) => `u${place}`);

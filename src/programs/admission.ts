import type { Config } from '../core/config/schema.js';
import { SwitchAdmin } from '../admission/degrade/switches.js';
import { Admission } from '../admission/admission.js';
import { Limits } from '../admission/limits/limits.js';
import { Lists } from '../admission/lists/lists.js';
import { NetworkSet } from '../admission/lists/network-set.js';
import { createClientAddress } from '../http/client-address.js';
import type { HttpServices } from '../http/services.js';
import { createLimitMetrics } from './admission-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { GateParts } from '../purchase/gate.js';
import { createLimitStore } from '../redis/limit-store.js';
import { openAdmissionChecks, type AdmissionChecks, type AdmissionChecksParts } from './admission-checks.js';
import type { OpenGuard } from './admission-breakers.js';
import type { OpenRules } from './admission-rules.js';
import { steadyClock } from './system-clock.js';

export interface AdmissionParts extends Pick<AdmissionChecksParts, 'redis' | 'registry' | 'isSoldOut' | 'fail'> {
  readonly rules: OpenRules;
  readonly guard: OpenGuard;
  readonly log: Log;
}

/** The entry of an api: every layer, under the rules that are in force now. */
export interface OpenAdmission {
  readonly services: Pick<HttpServices, 'entry' | 'addressOf' | 'rules' | 'switches'> &
    AdmissionChecks['services'] &
    OpenGuard['services'];
  readonly smooth: NonNullable<GateParts['smooth']>;
  /** With rules and guard. Lets nobody in who waits. Never rejects. */
  close(): Promise<void>;
}

export function openAdmission(
  { trustedProxies }: Config<'http'>['http'],
  { rules, guard, redis, registry, isSoldOut, log, fail }: AdmissionParts,
): OpenAdmission {
  const { repository, admin, keys, metrics } = rules;
  const limits = new Limits({
    ...{ rules: () => repository.rules.limits, store: createLimitStore(redis), clock: steadyClock },
    ...{ metrics: createLimitMetrics(registry), log },
  });
  const front = openAdmissionChecks({ keys, rules: () => repository.rules, redis, registry, metrics, isSoldOut, fail });
  // The breakers come last: who is let through in a trial should reach what is tried.
  const layers = [new Lists(() => repository.rules.lists), limits, guard.layer];
  return {
    services: {
      entry: new Admission(repository, layers, { metrics }),
      addressOf: createClientAddress(new NetworkSet(listOf(trustedProxies))),
      ...{ rules: admin, switches: new SwitchAdmin(admin), ...guard.services, ...front.services },
    },
    smooth: () => limits.smooth(),
    close: async () => void (await Promise.all([rules, guard, front].map((part) => part.close()))),
  };
}

const listOf = (text: string): string[] => text.split(',').filter((part) => part !== '');

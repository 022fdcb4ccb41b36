import type { Config } from '../core/config/schema.js';
import { SwitchDesk } from '../admission/degrade/switch-desk.js';
import { Entry } from '../admission/entry.js';
import { Limits } from '../admission/limits/limits.js';
import { Lists } from '../admission/lists/lists.js';
import { NetworkSet } from '../admission/lists/network-set.js';
import { createClientAddress } from '../http/client-address.js';
import type { HttpServices } from '../http/services.js';
import { createLimitMeters } from './entry-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { GateParts } from '../purchase/gate.js';
import { createLimitLedger } from '../redis/limit-ledger.js';
import { openEntryFront, type EntryFront, type EntryFrontParts } from './entry-front.js';
import type { OpenGuard } from './entry-guard.js';
import type { OpenRules } from './entry-rules.js';
import { steadyClock } from './system-clock.js';

export interface EntryParts extends Pick<EntryFrontParts, 'redis' | 'registry' | 'isSoldOut' | 'fail'> {
  readonly rules: OpenRules;
  readonly guard: OpenGuard;
  readonly log: Log;
}

/** The entry of an api: every layer, under the rules that are in force now. */
export interface OpenEntry {
  readonly services: Pick<HttpServices, 'entry' | 'addressOf' | 'rules' | 'switches'> &
    EntryFront['services'] &
    OpenGuard['services'];
  readonly smooth: NonNullable<GateParts['smooth']>;
  /** With rules and guard. Lets nobody in who waits. Never rejects. */
  close(): Promise<void>;
}

export function openEntry(
  { trustedProxies }: Config<'http'>['http'],
  { rules, guard, redis, registry, isSoldOut, log, fail }: EntryParts,
): OpenEntry {
  const { book, desk, keys, meters } = rules;
  const limits = new Limits({
    ...{ rules: () => book.rules.limits, ledger: createLimitLedger(redis), clock: steadyClock },
    ...{ meters: createLimitMeters(registry), log },
  });
  const front = openEntryFront({ keys, rules: () => book.rules, redis, registry, meters, isSoldOut, fail });
  // The breakers come last: who is let through in a trial should reach what is tried.
  const layers = [new Lists(() => book.rules.lists), limits, guard.layer];
  return {
    services: {
      entry: new Entry(book, layers, { meters }),
      addressOf: createClientAddress(new NetworkSet(listOf(trustedProxies))),
      ...{ rules: desk, switches: new SwitchDesk(desk), ...guard.services, ...front.services },
    },
    smooth: () => limits.smooth(),
    close: async () => void (await Promise.all([rules, guard, front].map((part) => part.close()))),
  };
}

const listOf = (text: string): string[] => text.split(',').filter((part) => part !== '');

import type { Config } from '../config/schema.js';
import { Entry } from '../entry/entry.js';
import { Limits } from '../entry/limits/limits.js';
import { Lists } from '../entry/lists/lists.js';
import { NetworkSet } from '../entry/lists/network-set.js';
import { missingSecrets } from '../entry/rules/missing-secrets.js';
import { RuleBook } from '../entry/rules/rule-book.js';
import { RuleDesk } from '../entry/rules/rule-desk.js';
import type { Fitness } from '../entry/rules/rule-set.js';
import { createClientAddress } from '../http/client-address.js';
import type { HttpServices } from '../http/services.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRuleStore } from '../mysql/rule-store.js';
import { createEntryMeters, createLimitMeters } from '../observability/entry-metrics.js';
import type { Log } from '../ports/log.js';
import type { GateParts } from '../purchase/gate.js';
import { createLimitLedger } from '../redis/limit-ledger.js';
import { createRuleBoard } from '../redis/rule-board.js';
import { entryKeysOf, openEntryFront, type EntryFront, type EntryFrontParts } from './entry-front.js';
import { steadyClock } from './system-clock.js';

export interface EntryParts extends Pick<EntryFrontParts, 'redis' | 'registry' | 'isSoldOut' | 'fail'> {
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** The entry of an api, with the rules that are in force now and a look-out for new ones. */
export interface OpenEntry {
  readonly services: Pick<HttpServices, 'entry' | 'addressOf' | 'rules'> & EntryFront['services'];
  readonly smooth: NonNullable<GateParts['smooth']>;
  /** Looks for new rules no more, and lets nobody in who waits. Never rejects. */
  close(): Promise<void>;
}

/** @throws OperationalError mysql */
export async function openEntry(
  config: Config<'http' | 'entry'>,
  { redis, mysql, registry, isSoldOut, log, fail }: EntryParts,
): Promise<OpenEntry> {
  const meters = createEntryMeters(registry);
  const [store, board] = [createRuleStore(mysql), createRuleBoard(redis)];
  const keys = entryKeysOf(config.entry);
  const unfit: Fitness = (rules) => missingSecrets(rules, keys);
  const book = new RuleBook({ board, store, clock: steadyClock, meters, log, unfit });
  await book.start();
  const stop = new AbortController();
  const looking = book.keepLooking(stop.signal).catch(fail);
  const limits = new Limits({
    ...{ rules: () => book.rules.limits, ledger: createLimitLedger(redis), clock: steadyClock },
    ...{ meters: createLimitMeters(registry), log },
  });
  const front = openEntryFront({ keys, rules: () => book.rules, redis, registry, meters, isSoldOut, fail });
  const layers = [new Lists(() => book.rules.lists), limits];
  return {
    services: {
      entry: new Entry(book, layers, { meters }),
      addressOf: createClientAddress(new NetworkSet(listOf(config.http.trustedProxies))),
      rules: new RuleDesk({ store, board, log, unfit }),
      ...front.services,
    },
    smooth: () => limits.smooth(),
    async close(): Promise<void> {
      stop.abort();
      await Promise.all([looking, front.close()]);
    },
  };
}

const listOf = (text: string): string[] => text.split(',').filter((part) => part !== '');

import type { Registry } from 'prom-client';
import type { Config } from '../config/schema.js';
import { Entry } from '../entry/entry.js';
import { SwitchDesk } from '../entry/degrade/switch-desk.js';
import { Limits } from '../entry/limits/limits.js';
import { Lists } from '../entry/lists/lists.js';
import { NetworkSet } from '../entry/lists/network-set.js';
import { RuleBook } from '../entry/rules/rule-book.js';
import { RuleDesk } from '../entry/rules/rule-desk.js';
import { createClientAddress } from '../http/client-address.js';
import type { HttpServices } from '../http/services.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRuleStore } from '../mysql/rule-store.js';
import { createEntryMeters, createLimitMeters } from '../observability/entry-metrics.js';
import type { Log } from '../ports/log.js';
import type { GateParts } from '../purchase/gate.js';
import type { RedisConnection } from '../redis/connection.js';
import { createLimitLedger } from '../redis/limit-ledger.js';
import { createRuleBoard } from '../redis/rule-board.js';
import { openGuard } from './entry-guard.js';
import { steadyClock } from './system-clock.js';
import type { WatchedPorts } from './watched-ports.js';

export interface EntryParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly log: Log;
  /** Told of what nobody foresaw. */
  readonly fail: (error: unknown) => void;
}

/** The entry of an api, with the rules that are in force now and a look-out for new ones. */
export interface OpenEntry {
  readonly services: Pick<HttpServices, 'entry' | 'addressOf' | 'rules' | 'switches' | 'degrade' | 'reads'>;
  readonly smooth: NonNullable<GateParts['smooth']>;
  /** Ports whose calls the breakers watch. */
  readonly watched: WatchedPorts;
  /** Looks for new rules no more. Never rejects. */
  close(): Promise<void>;
}

/** @throws OperationalError mysql */
export async function openEntry(
  config: Config<'http'>['http'],
  { redis, mysql, registry, log, fail }: EntryParts,
): Promise<OpenEntry> {
  const meters = createEntryMeters(registry);
  const [store, board] = [createRuleStore(mysql), createRuleBoard(redis)];
  const book = new RuleBook({ board, store, clock: steadyClock, meters, log });
  await book.start();
  const stop = new AbortController();
  const looking = book.keepLooking(stop.signal).catch(fail);
  const limits = new Limits({
    ...{ rules: () => book.rules.limits, ledger: createLimitLedger(redis), clock: steadyClock },
    ...{ meters: createLimitMeters(registry), log },
  });
  const guard = await openGuard({ rules: () => book.rules, redis, registry, log, fail });
  // The breakers come last: who is let through in a trial should reach what is tried.
  const layers = [new Lists(() => book.rules.lists), limits, guard.layer];
  const rules = new RuleDesk({ store, board, log });
  return {
    services: {
      entry: new Entry(book, layers, { meters }),
      addressOf: createClientAddress(new NetworkSet(listOf(config.trustedProxies))),
      ...{ rules, switches: new SwitchDesk(rules), ...guard.services },
    },
    smooth: () => limits.smooth(),
    watched: guard.watched,
    async close(): Promise<void> {
      stop.abort();
      await Promise.all([looking, guard.close()]);
    },
  };
}

const listOf = (text: string): string[] => text.split(',').filter((part) => part !== '');

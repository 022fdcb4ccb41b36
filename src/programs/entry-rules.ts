import type { Config } from '../core/config/schema.js';
import { missingSecrets } from '../admission/rules/missing-secrets.js';
import { RuleBook } from '../admission/rules/rule-book.js';
import { RuleDesk } from '../admission/rules/rule-desk.js';
import type { Fitness } from '../admission/rules/rule-set.js';
import type { MysqlPool } from '../mysql/pool.js';
import { createRuleStore } from '../mysql/rule-store.js';
import { createEntryMeters } from './entry-metrics.js';
import type { EntryMeters } from '../core/ports/entry-meters.js';
import type { Log } from '../core/ports/log.js';
import { createRuleBoard } from '../redis/rule-board.js';
import { entryKeysOf, type EntryFrontParts, type EntryKeys } from './entry-front.js';
import { steadyClock } from './system-clock.js';

export interface RulesParts extends Pick<EntryFrontParts, 'redis' | 'registry' | 'fail'> {
  readonly mysql: MysqlPool;
  readonly log: Log;
}

/** The rules of the entry that are in force now, with a look-out for new ones. */
export interface OpenRules {
  readonly book: RuleBook;
  readonly desk: RuleDesk;
  /** Rules that need others are refused. */
  readonly keys: EntryKeys;
  readonly meters: EntryMeters;
  /** Looks for new ones no more. Never rejects. */
  close(): Promise<void>;
}

/** @throws OperationalError mysql */
export async function openEntryRules(
  config: Config<'entry'>['entry'],
  { redis, mysql, registry, log, fail }: RulesParts,
): Promise<OpenRules> {
  const meters = createEntryMeters(registry);
  const [store, board] = [createRuleStore(mysql), createRuleBoard(redis)];
  const keys = entryKeysOf(config);
  const unfit: Fitness = (rules) => missingSecrets(rules, keys);
  const book = new RuleBook({ board, store, clock: steadyClock, meters, log, unfit });
  await book.start();
  const stop = new AbortController();
  const looking = book.keepLooking(stop.signal).catch(fail);
  return {
    ...{ book, desk: new RuleDesk({ store, board, log, unfit }), keys, meters },
    async close(): Promise<void> {
      stop.abort();
      await looking;
    },
  };
}

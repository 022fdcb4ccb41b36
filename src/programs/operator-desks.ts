import type { Config } from '../core/config/schema.js';
import type { MysqlPool } from '../mysql/pool.js';
import type { DeadLetterDesk } from '../recovery/dead-letters/dead-letter-desk.js';
import type { Log } from '../core/ports/log.js';
import type { ReconcileDesk } from '../recovery/reconcile/reconcile-desk.js';
import type { RedisConnection } from '../redis/connection.js';
import { openDeadLetterDesk } from './dead-letter-desk.js';
import { lateChannels } from './late-channels.js';
import { openReconcileDesk } from './reconcile-desk.js';

export interface OperatorDesksParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly config: Config<'rocketmq' | 'reconcile'>;
  readonly log: Log;
}

/** What operators do over HTTP; each desk takes what few of its visitors need when they need it. */
export function openOperatorDesks({ redis, mysql, config, log }: OperatorDesksParts): {
  readonly letters: DeadLetterDesk;
  readonly reconcile: ReconcileDesk;
  /** Never rejects. */
  close(): Promise<void>;
} {
  const letters = openDeadLetterDesk({ redis, mysql, rocketmq: config.rocketmq, log });
  const channel = lateChannels(config.rocketmq, log).redrives();
  const reconcile = openReconcileDesk({ redis, mysql, channel, options: config.reconcile, log });
  return {
    ...{ letters: letters.desk, reconcile: reconcile.desk },
    async close(): Promise<void> {
      await letters.close();
      await reconcile.close();
      await channel.close();
    },
  };
}

import type { Config } from '../core/config/schema.js';
import type { MysqlPool } from '../mysql/pool.js';
import type { DeadLetterAdmin } from '../recovery/dead-letters/dead-letter-admin.js';
import type { Log } from '../core/ports/log.js';
import type { ReconcileAdmin } from '../recovery/reconcile/reconcile-admin.js';
import type { RedisConnection } from '../redis/connection.js';
import { openDeadLetterAdmin } from './dead-letter-admin.js';
import { lateChannels } from './late-channels.js';
import { openReconcileAdmin } from './reconcile-admin.js';

export interface OperatorServicesParts {
  readonly redis: RedisConnection;
  readonly mysql: MysqlPool;
  readonly config: Config<'rocketmq' | 'reconcile'>;
  readonly log: Log;
}

/** What operators do over HTTP; each desk takes what few of its visitors need when they need it. */
export function openOperatorServices({ redis, mysql, config, log }: OperatorServicesParts): {
  readonly deadLetters: DeadLetterAdmin;
  readonly reconcile: ReconcileAdmin;
  /** Never rejects. */
  close(): Promise<void>;
} {
  const deadLetters = openDeadLetterAdmin({ redis, mysql, rocketmq: config.rocketmq, log });
  const channel = lateChannels(config.rocketmq, log).redrives();
  const reconcile = openReconcileAdmin({ redis, mysql, channel, options: config.reconcile, log });
  return {
    ...{ deadLetters: deadLetters.admin, reconcile: reconcile.admin },
    async close(): Promise<void> {
      await deadLetters.close();
      await reconcile.close();
      await channel.close();
    },
  };
}

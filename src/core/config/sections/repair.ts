import { fixed, text, type Keys } from '../key.js';

// Settings of a repair, which rebuilds sales whose data Redis may have lost.

export const repair = {
  /** Pause between two checks. Buyers of a sale that Redis has lost get 503 until a check finds the loss. */
  everyMs: fixed('REPAIR_EVERY_MS', 500),
  /** Once workers have written nothing of a sale for this time, the repair assumes that they have finished with it. */
  quietMs: fixed('REPAIR_QUIET_MS', 1500),
  namesrv: text({
    env: 'NAMESRV_ADDR',
    doc: 'Name servers of RocketMQ, for `seckill mq`, metrics of RocketMQ and faster repairs. Not set: a repair waits until the workers have stopped writing.',
    optional: true,
    minLength: 3,
    range: 'host:port; separate several with semicolons',
  }),
  /** Maximum wait for the workers. Later batches get units only while some are left. */
  waitMaxMs: fixed('REPAIR_WAIT_MAX_MS', 15_000),
  /** When the lease ends, another keeper takes over. `load.ts` keeps it longer than MYSQL_QUERY_TIMEOUT_MS. */
  leaseMs: fixed('REPAIR_LEASE_MS', 15_000),
} as const satisfies Keys;

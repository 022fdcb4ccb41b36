import { fixed, text, type Keys } from '../key.js';

// Settings of a repair, which rebuilds sales whose data Redis may have lost.

export const repair = {
  /** Buyers of a sale that Redis has lost get 503 until a check finds it. */
  everyMs: fixed('REPAIR_EVERY_MS', 500),
  /** Workers have finished with a sale when they have written nothing of it for this time. */
  quietMs: fixed('REPAIR_QUIET_MS', 1500),
  namesrv: text({
    env: 'NAMESRV_ADDR',
    doc: 'Name servers of RocketMQ. A repair uses them to ask the broker whether the workers have received all earlier messages; `seckill mq` and the metrics of RocketMQ need them too. Not set: a repair waits until the workers write nothing more.',
    optional: true,
    minLength: 3,
    range: 'host:port; separate several with semicolons',
  }),
  /** A repair waits at most this long for the workers. Later batches get units only while some are left. */
  waitMaxMs: fixed('REPAIR_WAIT_MAX_MS', 15_000),
  /** Another keeper then takes over from a keeper that died. `load.ts` keeps it above MYSQL_QUERY_TIMEOUT_MS. */
  leaseMs: fixed('REPAIR_LEASE_MS', 15_000),
} as const satisfies Keys;

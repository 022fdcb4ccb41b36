import { fixed, integer, networks, word, type Keys } from '../key.js';

// Settings of the keeper: how long data is kept, and when Redis and MySQL are compared.

export const keeper = {
  /** Longer than a check-back takes. */
  redriveAfterMs: fixed('REDRIVE_AFTER_MS', 60_000),
  /** Pause between runs of a job. Jobs that watch or clean up pause up to five times as long while idle. */
  everyMs: fixed('KEEPER_EVERY_MS', 2000),
  expireSweepEveryMs: fixed('EXPIRE_SWEEP_EVERY_MS', 2000),
  /** Determines the maximum delay of order notifications and of released units. */
  outboxEveryMs: fixed('OUTBOX_EVERY_MS', 500),
  /** Longer than three attempts to send. When the lease expires, another keeper takes the rows. */
  outboxLeaseMs: fixed('OUTBOX_LEASE_MS', 20_000),
  outboxKeepMs: integer({
    env: 'OUTBOX_KEEP_MS',
    doc: 'How long a finished row of the outbox is kept.',
    unit: 'ms',
    fallback: 86400000,
    min: 60000,
    max: 2592000000,
  }),
  retireAfterMs: integer({
    env: 'RETIRE_AFTER_MS',
    doc: 'How long a sale stays in Redis after its end. Must be longer than the broker keeps a half message (72 h by default). 0 keeps every sale in Redis.',
    unit: 'ms',
    fallback: 604800000,
    min: 0,
    max: 31536000000,
  }),
  archiveAfterMs: integer({
    env: 'ARCHIVE_AFTER_MS',
    doc: 'Time after a sale has left Redis until its orders move to the [archive](recovery.md#retired-sales). 0 disables the archive.',
    unit: 'ms',
    fallback: 604800000,
    min: 0,
    max: 31536000000,
  }),
  archivePerSecond: integer({
    env: 'ARCHIVE_PER_SECOND',
    doc: 'Maximum number of orders that one keeper archives per second.',
    unit: 'orders',
    fallback: 1000,
    min: 1,
    max: 100000,
  }),
  witness: word({
    env: 'WITNESS',
    doc: 'Whether a keeper follows the binary log of MySQL and reports changes that no program made (`watch`), and also resolves some (`act`). [The witness](recovery.md#the-witness) needs settings and rights, which `seckill doctor` checks.',
    words: ['off', 'watch', 'act'],
    fallback: 'off',
  }),
  webhookNetworks: networks({
    env: 'WEBHOOK_NETWORKS',
    doc: 'Private networks in which webhook endpoints are allowed, even over http. Not set: only public addresses over https.',
    optional: true,
  }),
} as const satisfies Keys;

export const reconcile = {
  everyMs: integer({
    env: 'RECONCILE_EVERY_MS',
    doc: 'Pause between two comparisons of Redis and MySQL. 0 disables them.',
    unit: 'ms',
    fallback: 300000,
    min: 0,
    max: 86400000,
  }),
  apply: word({
    env: 'RECONCILE_APPLY',
    doc: 'Whether the keeper repairs the differences it finds. Otherwise it only reports them.',
    words: ['true', 'false'],
    fallback: 'false',
  }),
  /** Longer than a re-drive takes. Younger batches may still be on their way and are not compared. */
  safeAgeMs: fixed('RECONCILE_SAFE_AGE_MS', 120_000),
  /** Age at which reconcile removes the markers of a closed sale. 0 stands for MARKER_LIFE_MS. */
  markerAgeMs: fixed('RECONCILE_MARKER_AGE_MS', 0),
  keepMs: integer({
    env: 'RECONCILE_KEEP_MS',
    doc: 'How long the record of a reconcile run is kept.',
    unit: 'ms',
    fallback: 604800000,
    min: 60000,
    max: 31536000000,
  }),
  /** Pause before the first retry. Doubles with each of five attempts. */
  retryFirstMs: fixed('COMPENSATE_RETRY_FIRST_MS', 60_000),
  /** If a keeper dies, its compensation is due again after this time. */
  leaseMs: fixed('COMPENSATE_LEASE_MS', 60_000),
} as const satisfies Keys;

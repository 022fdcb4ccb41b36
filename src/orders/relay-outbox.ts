import { jittered } from '../core/back-off.js';
import type { KeeperMetrics } from '../core/ports/keeper-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { Outbox, OutboxKind, OutboxPayloads, OutboxRow } from '../core/ports/outbox.js';
import type { Job } from '../core/job.js';

/** A row that can be read. */
export interface Promised<K extends OutboxKind> extends OutboxRow<K> {
  readonly payload: OutboxPayloads[K];
}

export interface RelayOutboxPorts<K extends OutboxKind> {
  readonly outbox: Pick<Outbox, 'lease' | 'markDone' | 'postpone'>;
  /**
   * Does what rows promise, all of them or it rejects. It may be asked again for a row that it has done: nothing may
   * happen twice.
   */
  readonly keep: (rows: readonly Promised<K>[]) => Promise<void>;
  /** Which new rows are kept together, since one message carries them all; absent: each is kept alone. */
  readonly gather?: (rows: readonly Promised<K>[]) => readonly (readonly Promised<K>[])[];
  readonly log: Log;
  readonly metrics: Pick<KeeperMetrics, 'relayed'>;
}

export interface RelayOutboxOptions<K extends OutboxKind> {
  readonly kind: K;
  /** Rows taken by one statement; all of them are under way at the same time. */
  readonly max: number;
  /** After this long a row that a keeper took with it into its death is due again; longer than `keep` may take. */
  readonly leaseMs: number;
}

/** Full takes of one run: a backlog is worked off in one go, but not for ever. */
const TAKES_MAX = 50;
/** A failed row waits 1, 2, 4 … s. So the longest wait after an outage is half a minute. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/**
 * Keeps what committed transactions have promised: takes due rows on lease, does what they say, marks them done by one
 * statement. A row that fails is due again later, then alone, so that it holds up no other one for long. Dying before
 * the mark does the row again when its lease is over.
 */
export function relayOutbox<K extends OutboxKind>(ports: RelayOutboxPorts<K>, options: RelayOutboxOptions<K>): Job {
  const { outbox } = ports;
  const { kind, max, leaseMs } = options;
  return {
    name: `relay-outbox:${kind}`,
    async runOnce(): Promise<void> {
      for (let takes = 1; takes <= TAKES_MAX; takes++) {
        const rows = await outbox.lease(kind, max, leaseMs);
        if (rows.length > 0) await relay(rows, ports);
        if (rows.length < max) return;
      }
    },
  };
}

/** @throws the error of the first row that failed, after all of them are marked or given back */
async function relay<K extends OutboxKind>(rows: readonly OutboxRow<K>[], ports: RelayOutboxPorts<K>): Promise<void> {
  const { outbox, log, metrics, keep } = ports;
  const [{ kind }] = rows as readonly [OutboxRow<K>];
  const done: string[] = [];
  const failed = new Map<number, string[]>(); // by attempts: they wait equally long
  let firstError: unknown;
  const give = (row: OutboxRow<K>, error: unknown): void => {
    const { outboxId, attempts } = row;
    firstError ??= error;
    log.debug({ outboxId, kind, attempts, err: error }, 'outbox row failed');
    failed.set(attempts, [...(failed.get(attempts) ?? []), outboxId]);
  };

  const readable = rows.filter((row): row is Promised<K> => row.payload !== null);
  for (const row of rows.filter(({ payload }) => payload === null)) {
    log.error({ outboxId: row.outboxId, kind }, 'an outbox row cannot be read: somebody has to mend it');
    give(row, new Error(`outbox row ${row.outboxId} cannot be read`));
  }
  const loads = loadsOf(readable, ports.gather);
  const results = await Promise.allSettled(loads.map(keep));
  for (const [index, result] of results.entries()) {
    const load = loads[index] as readonly Promised<K>[];
    if (result.status === 'fulfilled') done.push(...load.map(({ outboxId }) => outboxId));
    else for (const row of load) give(row, result.reason);
  }

  await outbox.markDone(done);
  metrics.relayed(kind, 'published', done.length);
  for (const [attempts, outboxIds] of failed) {
    await outbox.postpone(outboxIds, retryDelayMs(attempts));
    metrics.relayed(kind, 'retried', outboxIds.length);
  }
  if (failed.size > 0) throw firstError;
}

/** New rows as they are gathered; one that has failed goes alone, in case that it is what fails. */
function loadsOf<K extends OutboxKind>(
  rows: readonly Promised<K>[],
  gather: RelayOutboxPorts<K>['gather'],
): (readonly Promised<K>[])[] {
  const alone = rows.map((row) => [row]);
  if (gather === undefined) return alone;
  try {
    const fresh = gather(rows.filter(({ attempts }) => attempts === 1));
    return [...fresh, ...alone.filter(([row]) => row !== undefined && row.attempts > 1)];
  } catch {
    return alone; // one of them is not what it should be: alone, it fails alone
  }
}

/** With jitter: two keepers that failed together should not come back together. */
function retryDelayMs(attempts: number): number {
  return jittered(Math.min(RETRY_FIRST_MS * 2 ** (Math.max(attempts, 1) - 1), RETRY_MAX_MS));
}

import { jittered } from '../core/back-off.js';
import type { Job } from '../core/job.js';
import type { Log } from '../core/ports/log.js';
import type { Outbox, OutboxKind, OutboxPayloads, OutboxRow } from '../core/ports/outbox.js';
import type { OrderJobMetrics } from './metrics.js';

/** A row that can be read. */
export interface ReadableRow<K extends OutboxKind> extends OutboxRow<K> {
  readonly payload: OutboxPayloads[K];
}

export interface RelayPorts<K extends OutboxKind> {
  readonly outbox: Pick<Outbox, 'lease' | 'markDone' | 'postpone'>;
  /**
   * Does what the rows say, all of it, or rejects. It may be called again for a row that it has done: safe to repeat.
   */
  readonly handle: (rows: readonly ReadableRow<K>[]) => Promise<void>;
  /** Which new rows are handled together, since one message carries them all. Absent: each is handled alone. */
  readonly group?: (rows: readonly ReadableRow<K>[]) => readonly (readonly ReadableRow<K>[])[];
  readonly log: Log;
  readonly metrics: Pick<OrderJobMetrics, 'relayed'>;
}

/** Full leases of one run: a backlog is worked off in one go, but not for ever. */
const LEASES_MAX = 50;
/** A failed row waits 1, 2, 4 … s. So the longest wait after an outage is half a minute. */
const RETRY_FIRST_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/**
 * Handles due rows of the outbox: leases them, does what they say, marks them done with one statement. A row that
 * failed is due again later, and then alone, so that it does not delay others for long. If the keeper dies before the
 * mark, the row is handled again when its lease is over.
 * @param options `max`: rows of one lease, all handled at the same time; `leaseMs`: longer than `handle` may take
 */
export function relayOutbox<K extends OutboxKind>(
  ports: RelayPorts<K>,
  { kind, max, leaseMs }: { readonly kind: K; readonly max: number; readonly leaseMs: number },
): Job {
  return {
    name: `relay-outbox:${kind}`,
    async runOnce(): Promise<void> {
      for (let leases = 1; leases <= LEASES_MAX; leases++) {
        const rows = await ports.outbox.lease(kind, max, leaseMs);
        if (rows.length > 0) await relay(rows, kind, ports);
        if (rows.length < max) return;
      }
    },
  };
}

/** @throws the error of the first row that failed, after all rows are marked done or postponed */
async function relay<K extends OutboxKind>(
  rows: readonly OutboxRow<K>[],
  kind: K,
  { outbox, log, metrics, handle, group }: RelayPorts<K>,
): Promise<void> {
  const done: string[] = [];
  const failedByAttempts = new Map<number, string[]>(); // those with as many attempts wait equally long
  let firstError: unknown;
  const failed = ({ outboxId, attempts }: OutboxRow<K>, error: unknown): void => {
    firstError ??= error;
    log.debug({ outboxId, kind, attempts, err: error }, 'outbox row failed');
    failedByAttempts.set(attempts, [...(failedByAttempts.get(attempts) ?? []), outboxId]);
  };

  for (const row of rows.filter(({ payload }) => payload === null)) {
    log.error({ outboxId: row.outboxId, kind }, 'an outbox row cannot be read: it has to be repaired by hand');
    failed(row, new Error(`outbox row ${row.outboxId} cannot be read`));
  }
  const groups = groupsOf(
    rows.filter((row): row is ReadableRow<K> => row.payload !== null),
    group,
  );
  const results = await Promise.allSettled(groups.map(handle));
  for (const [index, result] of results.entries()) {
    const handled = groups[index] as readonly ReadableRow<K>[];
    if (result.status === 'fulfilled') done.push(...handled.map(({ outboxId }) => outboxId));
    else for (const row of handled) failed(row, result.reason);
  }

  await outbox.markDone(done);
  metrics.relayed(kind, 'published', done.length);
  for (const [attempts, outboxIds] of failedByAttempts) {
    await outbox.postpone(outboxIds, retryDelayMs(attempts));
    metrics.relayed(kind, 'retried', outboxIds.length);
  }
  if (failedByAttempts.size > 0) throw firstError;
}

/** New rows are grouped; one that has failed goes alone, in case it is what fails. */
function groupsOf<K extends OutboxKind>(
  rows: readonly ReadableRow<K>[],
  group: RelayPorts<K>['group'],
): (readonly ReadableRow<K>[])[] {
  const alone = rows.map((row) => [row]);
  if (group === undefined) return alone;
  try {
    const fresh = group(rows.filter(({ attempts }) => attempts === 1));
    return [...fresh, ...alone.filter(([row]) => row !== undefined && row.attempts > 1)];
  } catch {
    return alone; // one of them is not what it should be: alone, it fails alone
  }
}

/** With jitter: two keepers that failed together should not come back together. */
function retryDelayMs(attempts: number): number {
  return jittered(Math.min(RETRY_FIRST_MS * 2 ** (Math.max(attempts, 1) - 1), RETRY_MAX_MS));
}

/** Publishes how many rows of the outbox are not done. Old ones mean an outage, or a row that cannot be read. */
export function watchOutbox(outbox: Pick<Outbox, 'backlog'>, metrics: Pick<OrderJobMetrics, 'backlog'>): Job {
  return {
    name: 'watch-outbox',
    async runOnce(): Promise<void> {
      for (const backlog of await outbox.backlog()) metrics.backlog(backlog);
    },
  };
}

/** Rows of each kind that one statement removes: some tens of ms. */
const REMOVED_PER_STEP = 1_000;
/** More rows than one run removes wait for the next one. */
const REMOVE_STEPS_MAX = 20;

/** Removes rows that were done more than `keepMs` ago, so that the table stays as large as a few sales. */
export function tidyOutbox(
  outbox: Pick<Outbox, 'removeDone'>,
  metrics: Pick<OrderJobMetrics, 'removed'>,
  { keepMs }: { readonly keepMs: number },
): Job {
  return {
    name: 'tidy-outbox',
    async runOnce(): Promise<void> {
      for (let steps = 1; steps <= REMOVE_STEPS_MAX; steps++) {
        const removed = await outbox.removeDone(keepMs, REMOVED_PER_STEP);
        metrics.removed(removed);
        if (removed < REMOVED_PER_STEP) return; // every kind has less than a step left
      }
    },
  };
}

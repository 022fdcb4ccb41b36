import { decodeBatch } from '../../../src/core/batch.js';
import type { Purchase } from '../../../src/core/purchase.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type { DeadLetter, DeadLetterParking, TracedDeadLetters } from '../../../src/core/ports/dead-letters.js';
import type {
  DeadLetterFilter,
  DeadLetterMove,
  DeadLetterPage,
  DeadLetterStore,
  DeadLetterSummary,
  ParkedBatch,
  StoredDeadLetter,
} from '../../../src/operate/dead-letters/dead-letter-store.js';
import { ManualClock } from './manual-clock.js';

/** A row of the audit log, as a test compares it. */
export type Audited = AuditEntry;

/** Returns a dead letter as a list shows it after it was parked. */
export const storedDeadLetter = (parts: Partial<StoredDeadLetter> = {}): StoredDeadLetter => ({
  deadLetterId: '17',
  messageId: 'm1',
  group: 'seckill-order-writer',
  originTopic: 'seckill-purchase',
  saleId: '7',
  batchId: 'batch-1',
  body: '{',
  reason: 'retries_exhausted',
  detail: 'given up',
  attempts: 8,
  state: 'parked',
  parkedAtMs: 0,
  replays: 0,
  replayStartedAtMs: null,
  note: null,
  ...parts,
});

/** The queries of operators and traces. */
type Filter = DeadLetterFilter & { readonly traceId?: string };

/** Dead letters in memory. */
export class MemoryDeadLetters implements DeadLetterParking, DeadLetterStore, TracedDeadLetters {
  deadLetters: StoredDeadLetter[] = [];
  readonly audited: Audited[] = [];
  readonly #clock: Clock;
  /** batchId → its parked dead letter. */
  readonly #parkedBatches = new Map<string, string>();
  #failures = 0;

  constructor(clock: Clock = new ManualClock()) {
    this.#clock = clock;
  }

  /** Makes the next `count` moves fail. */
  breakMoves(count: number): void {
    this.#failures = count;
  }

  async park(deadLetter: DeadLetter): Promise<'parked' | 'already_parked'> {
    const { isBatch, ...letter } = deadLetter;
    const same = this.deadLetters.some(
      ({ messageId, group }) => messageId === deadLetter.messageId && group === deadLetter.group,
    );
    const batchId = isBatch === true ? deadLetter.batchId : null;
    if (same || (batchId !== null && this.#parkedBatches.has(batchId))) return 'already_parked';
    const deadLetterId = String(this.deadLetters.length + 1);
    if (batchId !== null) this.#parkedBatches.set(batchId, deadLetterId);
    this.deadLetters.push(storedDeadLetter({ ...letter, deadLetterId, parkedAtMs: this.#clock.nowMs() }));
    return 'parked';
  }

  async parkedBatches(afterBatchId: string, max: number): Promise<ParkedBatch[]> {
    const page = [...this.#parkedBatches]
      .filter(([batchId]) => batchId > afterBatchId)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .slice(0, max);
    return page.map(([batchId, deadLetterId]) => {
      const { body } = this.deadLetters.find((one) => one.deadLetterId === deadLetterId) as StoredDeadLetter;
      return { deadLetterId, batchId, body };
    });
  }

  async list(filter: Filter, { afterId = '0', max }: DeadLetterPage): Promise<DeadLetterSummary[]> {
    const found = this.deadLetters.filter(
      (deadLetter) => matches(deadLetter, filter) && Number(deadLetter.deadLetterId) > Number(afterId),
    );
    return found.slice(0, max).map(({ body: _, ...summary }) => summary);
  }

  async count(filter: DeadLetterFilter): Promise<number> {
    return this.deadLetters.filter((deadLetter) => matches(deadLetter, filter)).length;
  }

  async find(deadLetterId: string): Promise<StoredDeadLetter | null> {
    return this.deadLetters.find((deadLetter) => deadLetter.deadLetterId === deadLetterId) ?? null;
  }

  async beginReplay(deadLetterId: string, actor: string): Promise<DeadLetterMove> {
    return this.#move(deadLetterId, actor, 'dead_letter.replay_begun', ({ state, replays }) => ({
      change: { replays: replays + 1, replayStartedAtMs: this.#clock.nowMs() },
      after: { state, replays: replays + 1 },
    }));
  }

  async close(
    deadLetterId: string,
    actor: string,
    end: 'replayed' | 'discarded',
    note: string,
  ): Promise<DeadLetterMove> {
    return this.#move(deadLetterId, actor, `dead_letter.${end}`, ({ replays }) => ({
      change: { state: end, note },
      after: { state: end, replays, note },
    }));
  }

  async keepParked(deadLetterId: string, actor: string, note: string): Promise<DeadLetterMove> {
    return this.#move(deadLetterId, actor, 'dead_letter.kept_parked', ({ state, replays }) => ({
      change: { note },
      after: { state, replays, note },
    }));
  }

  #move(
    deadLetterId: string,
    actor: string,
    action: string,
    move: (deadLetter: StoredDeadLetter) => { change: Partial<StoredDeadLetter>; after: unknown },
  ): DeadLetterMove {
    if (this.#failures > 0) {
      this.#failures--;
      throw new OperationalError('mysql', 'fault of the test', { retryable: true });
    }
    const index = this.deadLetters.findIndex((deadLetter) => deadLetter.deadLetterId === deadLetterId);
    const deadLetter = this.deadLetters[index];
    if (deadLetter === undefined) return 'not_found';
    if (deadLetter.state !== 'parked') return 'not_parked';
    const { change, after } = move(deadLetter);
    const { state, replays, note } = deadLetter;
    this.deadLetters[index] = { ...deadLetter, ...change };
    const isClosed = change.state !== undefined && change.state !== 'parked';
    if (isClosed && this.#parkedBatches.get(deadLetter.batchId ?? '') === deadLetterId) {
      this.#parkedBatches.delete(deadLetter.batchId ?? '');
    }
    const subject = `dead_letter:${deadLetterId}`;
    this.audited.push({ actor, action, subject, before: { state, replays, note }, after });
    return 'done';
  }
}

function matches(deadLetter: StoredDeadLetter, filter: Filter): boolean {
  const { ids, group, originTopic, saleId, batchId, key, reason, text, state, sinceMs, untilMs, replayBegun } = filter;
  const { traceId } = filter;
  const same = <T>(wanted: T | undefined, has: T): boolean => wanted === undefined || wanted === has;
  return (
    (ids === undefined || ids.includes(deadLetter.deadLetterId)) &&
    (text === undefined || deadLetter.detail.includes(text)) &&
    same(originTopic, deadLetter.originTopic) &&
    same(group, deadLetter.group) &&
    same<string | null>(saleId, deadLetter.saleId) &&
    same(reason, deadLetter.reason) &&
    same(state, deadLetter.state) &&
    same<string | null>(batchId, deadLetter.batchId) &&
    same(replayBegun, deadLetter.replayStartedAtMs !== null) &&
    (sinceMs === undefined || deadLetter.parkedAtMs >= sinceMs) &&
    (untilMs === undefined || deadLetter.parkedAtMs < untilMs) &&
    (key === undefined ||
      deadLetter.batchId === key ||
      (deadLetter.state === 'parked' && purchasesIn(deadLetter).some(({ requestId }) => requestId === key))) &&
    (traceId === undefined ||
      (deadLetter.state === 'parked' && purchasesIn(deadLetter).some((purchase) => purchase.traceId === traceId)))
  );
}

function purchasesIn({ body }: StoredDeadLetter): readonly Purchase[] {
  const decoded = decodeBatch(body);
  return decoded.outcome === 'decoded' ? decoded.batch.purchases : [];
}

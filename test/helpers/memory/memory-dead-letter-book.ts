import { decodeBatch } from '../../../src/core/batch.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import type {
  DeadLetter,
  DeadLetterBook,
  DeadLetterFilter,
  DeadLetterPage,
  DeadLetterSummary,
  LetterMove,
  StoredDeadLetter,
} from '../../../src/core/ports/dead-letters.js';
import { ManualClock } from './manual-clock.js';

/** A row of the audit log, as a test compares it. */
export type Audited = AuditEntry;

/** Dead letters in memory. */
export class MemoryDeadLetterBook implements DeadLetterBook {
  letters: StoredDeadLetter[] = [];
  readonly audited: Audited[] = [];
  readonly #clock: Clock;
  #failures = 0;

  constructor(clock: Clock = new ManualClock()) {
    this.#clock = clock;
  }

  /** The next `count` moves fail. */
  breakMoves(count: number): void {
    this.#failures = count;
  }

  async park(letter: DeadLetter): Promise<'parked' | 'already_parked'> {
    const same = this.letters.some(({ messageId, group }) => messageId === letter.messageId && group === letter.group);
    if (same) return 'already_parked';
    const fresh = { state: 'parked', replays: 0, replayStartedAtMs: null, note: null } as const;
    const letterId = String(this.letters.length + 1);
    this.letters.push({ ...letter, letterId, parkedAtMs: this.#clock.nowMs(), ...fresh });
    return 'parked';
  }

  async list(filter: DeadLetterFilter, { afterId = '0', max }: DeadLetterPage): Promise<DeadLetterSummary[]> {
    const found = this.letters.filter((letter) => matches(letter, filter) && Number(letter.letterId) > Number(afterId));
    return found.slice(0, max).map(({ body: _, ...summary }) => summary);
  }

  async count(filter: DeadLetterFilter): Promise<number> {
    return this.letters.filter((letter) => matches(letter, filter)).length;
  }

  async find(letterId: string): Promise<StoredDeadLetter | null> {
    return this.letters.find((letter) => letter.letterId === letterId) ?? null;
  }

  async beginReplay(letterId: string, actor: string): Promise<LetterMove> {
    return this.#move(letterId, actor, 'dead_letter.replay_begun', ({ state, replays }) => ({
      change: { replays: replays + 1, replayStartedAtMs: this.#clock.nowMs() },
      after: { state, replays: replays + 1 },
    }));
  }

  async close(letterId: string, actor: string, end: 'replayed' | 'discarded', note: string): Promise<LetterMove> {
    return this.#move(letterId, actor, `dead_letter.${end}`, ({ replays }) => ({
      change: { state: end, note },
      after: { state: end, replays, note },
    }));
  }

  async keepParked(letterId: string, actor: string, note: string): Promise<LetterMove> {
    return this.#move(letterId, actor, 'dead_letter.kept_parked', ({ state, replays }) => ({
      change: { note },
      after: { state, replays, note },
    }));
  }

  #move(
    letterId: string,
    actor: string,
    action: string,
    move: (letter: StoredDeadLetter) => { change: Partial<StoredDeadLetter>; after: unknown },
  ): LetterMove {
    if (this.#failures > 0) {
      this.#failures--;
      throw new OperationalError('mysql', 'ordered by the test', { retryable: true });
    }
    const index = this.letters.findIndex((letter) => letter.letterId === letterId);
    const letter = this.letters[index];
    if (letter === undefined) return 'not_found';
    if (letter.state !== 'parked') return 'not_parked';
    const { change, after } = move(letter);
    const { state, replays, note } = letter;
    this.letters[index] = { ...letter, ...change };
    const subject = `dead_letter:${letterId}`;
    this.audited.push({ actor, action, subject, before: { state, replays, note }, after });
    return 'done';
  }
}

function matches(letter: StoredDeadLetter, filter: DeadLetterFilter): boolean {
  const { group, saleId, batchId, key, reason, state, sinceMs, untilMs, replayBegun } = filter;
  const same = <T>(wanted: T | undefined, has: T): boolean => wanted === undefined || wanted === has;
  return (
    same(group, letter.group) &&
    same<string | null>(saleId, letter.saleId) &&
    same(reason, letter.reason) &&
    same(state, letter.state) &&
    same<string | null>(batchId, letter.batchId) &&
    same(replayBegun, letter.replayStartedAtMs !== null) &&
    (sinceMs === undefined || letter.parkedAtMs >= sinceMs) &&
    (untilMs === undefined || letter.parkedAtMs < untilMs) &&
    (key === undefined || letter.batchId === key || requestIds(letter.body).includes(key))
  );
}

function requestIds(body: string): string[] {
  const decoded = decodeBatch(body);
  return decoded.outcome === 'decoded' ? decoded.batch.purchases.map(({ requestId }) => requestId) : [];
}

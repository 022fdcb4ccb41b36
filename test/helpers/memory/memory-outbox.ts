import { OperationalError } from '../../../src/core/errors.js';
import type { Clock } from '../../../src/core/ports/clock.js';
import { OUTBOX_PAUSE_MAX_MS } from '../../../src/mysql/outbox.js';
import {
  OUTBOX_KINDS,
  type Outbox,
  type OutboxBacklog,
  type OutboxKind,
  type OutboxPayloads,
  type OutboxRow,
} from '../../../src/core/ports/outbox.js';
import { isWaitOver } from './wait-over.js';

/** Faults that a test can inject, each for the next call of its kind. */
export type OutboxFault = 'lease_fails' | 'mark_fails' | 'postpone_fails';

/** A row of the table. */
export type StoredRow = {
  [K in OutboxKind]: { readonly kind: K; readonly payload: OutboxPayloads[K] | null };
}[OutboxKind] & {
  readonly id: string;
  readonly key: string;
  readonly createdAtMs: number;
  availableAtMs: number;
  attempts: number;
  doneAtMs: number | null;
};

/** The outbox in memory, on an injected clock. */
export class MemoryOutbox implements Outbox {
  rows: StoredRow[] = [];
  readonly #clock: Clock;
  readonly #faults: OutboxFault[] = [];
  #nextId = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Injects faults for the next call of each kind, before it changes anything. */
  breakNext(...faults: OutboxFault[]): void {
    this.#faults.push(...faults);
  }

  /** Adds a row as a transaction would, with null for an unreadable payload. @returns the id of the row */
  add<K extends OutboxKind>(kind: K, key: string, payload: OutboxPayloads[K] | null): string {
    const nowMs = this.#clock.nowMs();
    const id = String(this.#nextId++);
    const times = { createdAtMs: nowMs, availableAtMs: nowMs, attempts: 0, doneAtMs: null };
    this.rows.push({ id, key, kind, payload, ...times } as StoredRow);
    return id;
  }

  /** Returns unfinished rows of a kind, due or not. */
  undone(kind: OutboxKind): StoredRow[] {
    return this.rows.filter((row) => row.kind === kind && row.doneAtMs === null);
  }

  async lease<K extends OutboxKind>(kind: K, max: number, leaseMs: number): Promise<OutboxRow<K>[]> {
    this.#failOn('lease_fails');
    const nowMs = this.#clock.nowMs();
    const due = this.undone(kind)
      .filter((row) => isWaitOver(row.availableAtMs, nowMs, Math.max(leaseMs, OUTBOX_PAUSE_MAX_MS)))
      .sort((a, b) => a.availableAtMs - b.availableAtMs);
    return due.slice(0, max).map((row) => {
      row.attempts++;
      row.availableAtMs = nowMs + leaseMs;
      const { id, createdAtMs, attempts } = row;
      return { outboxId: id, kind, payload: row.payload as OutboxPayloads[K] | null, createdAtMs, attempts };
    });
  }

  async markDone(outboxIds: readonly string[]): Promise<void> {
    this.#failOn('mark_fails');
    for (const row of this.#undoneOf(outboxIds)) row.doneAtMs = this.#clock.nowMs();
  }

  async postpone(outboxIds: readonly string[], delayMs: number): Promise<void> {
    this.#failOn('postpone_fails');
    for (const row of this.#undoneOf(outboxIds)) row.availableAtMs = this.#clock.nowMs() + delayMs;
  }

  async giveBack(outboxIds: readonly string[], delayMs: number): Promise<void> {
    await this.postpone(outboxIds, delayMs);
    for (const row of this.#undoneOf(outboxIds)) row.attempts--;
  }

  async backlog(): Promise<OutboxBacklog[]> {
    return OUTBOX_KINDS.map((kind) => {
      const [first, ...rest] = this.undone(kind);
      if (first === undefined) return { kind, undone: 0, oldestMs: 0 };
      return { kind, undone: rest.length + 1, oldestMs: this.#clock.nowMs() - first.createdAtMs };
    });
  }

  async removeDone(olderThanMs: number, max: number): Promise<number> {
    const beforeMs = this.#clock.nowMs() - olderThanMs;
    const old = OUTBOX_KINDS.flatMap((kind) =>
      this.rows.filter((row) => row.kind === kind && row.doneAtMs !== null && row.doneAtMs < beforeMs).slice(0, max),
    );
    this.rows = this.rows.filter((row) => !old.includes(row));
    return old.length;
  }

  #undoneOf(outboxIds: readonly string[]): StoredRow[] {
    return this.rows.filter((row) => outboxIds.includes(row.id) && row.doneAtMs === null);
  }

  #failOn(fault: OutboxFault): void {
    const at = this.#faults.indexOf(fault);
    if (at < 0) return;
    this.#faults.splice(at, 1);
    throw new OperationalError('mysql', `fault of the test: ${fault}`, { retryable: true });
  }
}

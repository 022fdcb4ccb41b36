import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ClientHistory, Look, Move } from '../../invariants/check-history.js';
import type { Heard } from '../../invariants/check-sale.js';
import type { Answer } from './http.js';

/** One line of the file, without its time. */
interface Note {
  readonly op: 'purchase' | 'look' | Move;
  /** `userId/requestId` or order id. */
  readonly key: string;
  readonly event: 'invoke' | Heard;
  readonly status?: number;
  readonly code?: string;
  readonly orderId?: string;
}

/**
 * What one client did and heard. In memory one entry per purchase of one sale (`userId/requestId` → ok, fail or
 * unknown); in its file one line of JSON per event, in the order of time, kept after the run.
 */
export class OpLog implements ClientHistory {
  readonly entries = new Map<string, Heard>();
  readonly moves = new Map<string, Set<Move>>();
  readonly looks = new Map<string, Look[]>();
  readonly soldOut = new Map<string, number>();
  /** Purchases sent, tries with the same key counted each. */
  requests = 0;
  readonly #file: string | null;
  #lines: string[] = [];

  /** @param file null: only in memory */
  constructor(file: string | null = null) {
    this.#file = file;
    if (file !== null) mkdirSync(dirname(file), { recursive: true });
  }

  /** Before a request leaves. */
  invoke(op: Note['op'], key: string): void {
    if (op === 'purchase') this.requests++;
    this.#write({ op, key, event: 'invoke' });
  }

  /**
   * Notes one try: ok if any try was 2xx, fail if every one was refused, else unknown.
   * @param answer null: the connection broke, or nothing came in time
   * @param quantity units asked for
   */
  hear(key: string, answer: Answer | null, quantity = 1): void {
    const heard = heardIn(answer);
    const before = this.entries.get(key) ?? heard;
    if (before === 'ok' || heard === 'ok') this.entries.set(key, 'ok');
    else this.entries.set(key, before === heard ? heard : 'unknown');
    if (answer?.json.code === 'sold_out') this.soldOut.set(key, quantity);
    else this.soldOut.delete(key);
    this.#write({ op: 'purchase', key, event: heard, ...factsOf(answer) });
  }

  /** Notes what a GET of a purchase said. An answer that says nothing of it (503, 429) leaves no look. */
  look(key: string, answer: Answer | null): void {
    this.#write({ op: 'look', key, event: heardIn(answer), ...factsOf(answer) });
    const look = lookIn(answer);
    if (look === null) return;
    const seen = this.looks.get(key) ?? [];
    const last = seen.at(-1);
    if (last?.status !== look.status || last.orderId !== look.orderId) seen.push(look);
    this.looks.set(key, seen);
  }

  /** Notes the answer to a payment or a cancellation. */
  move(move: Move, orderId: string, answer: Answer | null): void {
    const heard = heardIn(answer);
    this.#write({ op: move, key: orderId, event: heard, ...factsOf(answer) });
    if (heard !== 'ok') return;
    this.moves.set(orderId, (this.moves.get(orderId) ?? new Set<Move>()).add(move));
  }

  count(heard: Heard): number {
    return [...this.entries.values()].filter((entry) => entry === heard).length;
  }

  /** Writes what is not in the file yet. */
  flush(): void {
    if (this.#file !== null && this.#lines.length > 0) appendFileSync(this.#file, this.#lines.join(''));
    this.#lines = [];
  }

  #write(note: Note): void {
    if (this.#file === null) return;
    this.#lines.push(`${JSON.stringify({ atMs: Date.now(), ...note })}\n`);
    if (this.#lines.length >= LINES_AT_ONCE) this.flush();
  }
}

/** One write per line would be what a load of thousands of buyers does most. */
const LINES_AT_ONCE = 200;

function heardIn(answer: Answer | null): Heard {
  if (answer === null || answer.status === 500) return 'unknown';
  if (answer.status < 300) return 'ok';
  return answer.json.code === 'outcome_unknown' ? 'unknown' : 'fail';
}

function factsOf(answer: Answer | null): Pick<Note, 'status' | 'code' | 'orderId'> {
  if (answer === null) return {};
  const { code, orderId } = answer.json;
  return {
    status: answer.status,
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof orderId === 'string' ? { orderId } : {}),
  };
}

function lookIn(answer: Answer | null): Look | null {
  if (answer?.status === 404) return { status: 'absent', orderId: null };
  const { status, orderId } = answer?.json ?? {};
  if (status !== 'pending' && status !== 'ordered' && status !== 'failed') return null;
  return { status, orderId: typeof orderId === 'string' ? orderId : null };
}

import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ClientHistory, Move, SeenStatus } from '../../invariants/check-history.js';
import type { ClientOutcome } from '../../invariants/check-sale.js';
import type { Answer } from './http.js';

/** Lines are written together, because a write per line would be most of the work of a load. */
const LINES_AT_ONCE = 200;

/** A line of the file, without its time. */
interface Entry {
  readonly op: 'purchase' | 'status' | Move;
  /** `userId/requestId` or order id. */
  readonly key: string;
  readonly event: 'invoke' | ClientOutcome;
  readonly status?: number;
  readonly code?: string;
  readonly orderId?: string;
}

/**
 * The requests of one client and their answers. Memory holds one entry per purchase of one sale (`userId/requestId` →
 * ok, fail or unknown). The file holds one line of JSON per event in order of time, and remains after the run.
 */
export class OpLog implements ClientHistory {
  readonly entries = new Map<string, ClientOutcome>();
  readonly moves = new Map<string, Set<Move>>();
  readonly statuses = new Map<string, SeenStatus[]>();
  readonly soldOut = new Map<string, number>();
  /** Purchases sent, including retries with the same key. */
  requests = 0;
  /** Payments and cancellations that got no answer. */
  movesBroken = 0;
  /** How often each answer to a purchase came: `202`, `409 sold_out`, or `nothing` if the connection broke. */
  readonly answers = new Map<string, number>();
  readonly #file: string | null;
  #lines: string[] = [];

  /** @param file null: only in memory */
  constructor(file: string | null = null) {
    this.#file = file;
    if (file !== null) mkdirSync(dirname(file), { recursive: true });
  }

  /** Records a request before it is sent. */
  invoke(op: Entry['op'], key: string): void {
    if (op === 'purchase') this.requests++;
    this.#write({ op, key, event: 'invoke' });
  }

  /**
   * Records the answer to one attempt of a purchase: ok if any attempt was 2xx, fail if every attempt was refused,
   * otherwise unknown.
   * @param answer null if the connection broke, or nothing came in time
   * @param quantity requested units
   */
  recordAnswer(key: string, answer: Answer | null, quantity = 1): void {
    const outcome = outcomeOf(answer);
    const word = answer === null ? 'nothing' : [answer.status, ...codeIn(answer)].join(' ');
    this.answers.set(word, (this.answers.get(word) ?? 0) + 1);
    const before = this.entries.get(key) ?? outcome;
    if (before === 'ok' || outcome === 'ok') this.entries.set(key, 'ok');
    else this.entries.set(key, before === outcome ? outcome : 'unknown');
    const { code } = answer?.json ?? {};
    if (code === 'sold_out' || code === 'not_enough_left') this.soldOut.set(key, quantity);
    else this.soldOut.delete(key);
    this.#write({ op: 'purchase', key, event: outcome, ...detailsOf(answer) });
  }

  /** Records the answer to a GET of a purchase. An answer without a status (503, 429) adds none. */
  recordStatus(key: string, answer: Answer | null): void {
    this.#write({ op: 'status', key, event: outcomeOf(answer), ...detailsOf(answer) });
    const status = statusIn(answer);
    if (status === null) return;
    const seen = this.statuses.get(key) ?? [];
    const last = seen.at(-1);
    if (last?.status !== status.status || last.orderId !== status.orderId) seen.push(status);
    this.statuses.set(key, seen);
  }

  /** Records the answer to a payment or a cancellation. */
  recordMove(move: Move, orderId: string, answer: Answer | null): void {
    const outcome = outcomeOf(answer);
    if (answer === null) this.movesBroken++;
    this.#write({ op: move, key: orderId, event: outcome, ...detailsOf(answer) });
    if (outcome !== 'ok') return;
    this.moves.set(orderId, (this.moves.get(orderId) ?? new Set<Move>()).add(move));
  }

  count(outcome: ClientOutcome): number {
    return [...this.entries.values()].filter((entry) => entry === outcome).length;
  }

  /** Writes everything that is not yet in the file. */
  flush(): void {
    if (this.#file !== null && this.#lines.length > 0) appendFileSync(this.#file, this.#lines.join(''));
    this.#lines = [];
  }

  #write(entry: Entry): void {
    if (this.#file === null) return;
    this.#lines.push(`${JSON.stringify({ atMs: Date.now(), ...entry })}\n`);
    if (this.#lines.length >= LINES_AT_ONCE) this.flush();
  }
}

function outcomeOf(answer: Answer | null): ClientOutcome {
  if (answer === null || answer.status === 500) return 'unknown';
  if (answer.status < 300) return 'ok';
  return answer.json.code === 'outcome_unknown' ? 'unknown' : 'fail';
}

const codeIn = ({ json: { code } }: Answer): readonly string[] => (typeof code === 'string' ? [code] : []);

function detailsOf(answer: Answer | null): Pick<Entry, 'status' | 'code' | 'orderId'> {
  if (answer === null) return {};
  const { code, orderId } = answer.json;
  return {
    status: answer.status,
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof orderId === 'string' ? { orderId } : {}),
  };
}

function statusIn(answer: Answer | null): SeenStatus | null {
  if (answer?.status === 404) return { status: 'absent', orderId: null };
  const { status, orderId } = answer?.json ?? {};
  if (status !== 'pending' && status !== 'ordered' && status !== 'failed') return null;
  return { status, orderId: typeof orderId === 'string' ? orderId : null };
}

/** The op logs of all clients of a sale, merged into one. */
export interface JoinedLogs {
  readonly entries: ReadonlyMap<string, ClientOutcome>;
  readonly history: ClientHistory;
}

/**
 * Merges the op logs of several clients. A purchase that two clients tried is ok if either got ok, fail if both got
 * fail, otherwise unknown. Its `sold_out` counts only if no other client got another answer. Statuses that two clients
 * saw of one purchase have no common order, so only the first client's are kept.
 */
export function joinLogs(logs: readonly OpLog[]): JoinedLogs {
  const entries = new Map<string, ClientOutcome>();
  const moves = new Map<string, Set<Move>>();
  const statuses = new Map<string, readonly SeenStatus[]>();
  const soldOut = new Map<string, number>();
  for (const log of logs) {
    for (const [key, outcome] of log.entries) entries.set(key, joined(entries.get(key), outcome));
    for (const [orderId, confirmed] of log.moves) {
      moves.set(orderId, new Set([...(moves.get(orderId) ?? []), ...confirmed]));
    }
    for (const [key, seen] of log.statuses) if (!statuses.has(key)) statuses.set(key, seen);
    for (const [key, quantity] of log.soldOut) soldOut.set(key, quantity);
  }
  for (const key of soldOut.keys()) {
    if (logs.some((log) => log.entries.has(key) && !log.soldOut.has(key))) soldOut.delete(key);
  }
  return { entries, history: { moves, statuses, soldOut } };
}

function joined(before: ClientOutcome | undefined, outcome: ClientOutcome): ClientOutcome {
  if (before === undefined || before === outcome) return outcome;
  return before === 'ok' || outcome === 'ok' ? 'ok' : 'unknown';
}

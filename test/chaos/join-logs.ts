import type { ClientHistory, Look, Move } from '../invariants/check-history.js';
import type { Heard } from '../invariants/check-sale.js';
import type { OpLog } from './harness/op-log.js';

/** What all clients of a sale heard, as one. */
export interface JoinedLogs {
  readonly entries: ReadonlyMap<string, Heard>;
  readonly history: ClientHistory;
}

/**
 * Joins the op logs of several clients. A purchase that two of them tried: ok if either heard ok, fail if both heard
 * fail, else unknown; its `sold_out` counts only when no other client heard otherwise. Looks of two clients at one
 * purchase have no common order, so only those of the first are kept.
 */
export function joinLogs(logs: readonly OpLog[]): JoinedLogs {
  const entries = new Map<string, Heard>();
  const moves = new Map<string, Set<Move>>();
  const looks = new Map<string, readonly Look[]>();
  const soldOut = new Map<string, number>();
  for (const log of logs) {
    for (const [key, heard] of log.entries) entries.set(key, joined(entries.get(key), heard));
    for (const [orderId, said] of log.moves) moves.set(orderId, new Set([...(moves.get(orderId) ?? []), ...said]));
    for (const [key, seen] of log.looks) if (!looks.has(key)) looks.set(key, seen);
    for (const [key, quantity] of log.soldOut) soldOut.set(key, quantity);
  }
  for (const key of soldOut.keys()) {
    if (logs.some((log) => log.entries.has(key) && !log.soldOut.has(key))) soldOut.delete(key);
  }
  return { entries, history: { moves, looks, soldOut } };
}

function joined(before: Heard | undefined, heard: Heard): Heard {
  if (before === undefined || before === heard) return heard;
  return before === 'ok' || heard === 'ok' ? 'ok' : 'unknown';
}

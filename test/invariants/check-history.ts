import type { FailureReason } from '../../src/core/order.js';
import type { AuditedOrder } from '../../src/core/ports/audit.js';
import type { Finding } from './check-sale.js';

/** What an order was asked to become. */
export type Move = 'pay' | 'cancel';

/** What one GET of a purchase said; `absent` is 404. */
export interface Look {
  readonly status: 'pending' | 'ordered' | 'failed' | 'absent';
  readonly orderId: string | null;
}

/** What clients saw beyond the answers to their purchases. */
export interface ClientHistory {
  /** Order id → moves that were answered with yes. */
  readonly moves: ReadonlyMap<string, ReadonlySet<Move>>;
  /** `userId/requestId` → its looks, in the order of time. */
  readonly looks: ReadonlyMap<string, readonly Look[]>;
  /** `userId/requestId` → units, of purchases whose last word was `sold_out`. */
  readonly soldOut: ReadonlyMap<string, number>;
}

/** The books that the history is held against. */
export interface HistoryRows {
  /** `userId/requestId` → row. */
  readonly rows: ReadonlyMap<string, AuditedOrder>;
  readonly unitsLeft: number;
}

/** I6, I7 and I8 as clients can see them, for a sale at rest. */
export function judgeHistory(history: ClientHistory, books: HistoryRows): Finding[] {
  return [...judgeMoves(history, books), ...judgeRefusals(history, books), ...judgeLooks(history, books)];
}

/** I6: no order was both paid and cancelled, and what was answered with yes stands in the book. */
function judgeMoves({ moves }: ClientHistory, { rows }: HistoryRows): Finding[] {
  const findings: Finding[] = [];
  const stateOf = new Map([...rows.values()].map(({ orderId, state }) => [orderId, state]));
  for (const [orderId, said] of moves) {
    if (said.size > 1) findings.push({ invariant: 'I6', detail: `order ${orderId} was paid and cancelled` });
    const state = stateOf.get(orderId);
    for (const move of said) {
      if (state === (move === 'pay' ? 'paid' : 'cancelled')) continue;
      findings.push({ invariant: 'I6', detail: `order ${orderId}: ${move} was confirmed, and it is ${state}` });
    }
  }
  return findings;
}

/** I7: nobody heard `sold_out` while units for him were there; units that came back later prove nothing. */
function judgeRefusals({ soldOut }: ClientHistory, { rows, unitsLeft }: HistoryRows): Finding[] {
  const cameBack = [...rows.values()].some(({ state }) => state !== 'pending_payment' && state !== 'paid');
  if (cameBack) return [];
  const served = [...soldOut].find(([, quantity]) => quantity <= unitsLeft);
  if (served === undefined) return [];
  const [key, quantity] = served;
  return [{ invariant: 'I7', detail: `${key} (${quantity}) heard sold_out, and ${unitsLeft} units are left` }];
}

/** I8: no client saw a purchase go back, and the order it was shown is the one in the book. */
function judgeLooks({ looks }: ClientHistory, { rows }: HistoryRows): Finding[] {
  const findings: Finding[] = [];
  for (const [key, seen] of looks) {
    let last: Look | null = null;
    for (const look of seen) {
      if (last !== null && isOver(last) && (look.status !== last.status || look.orderId !== last.orderId)) {
        findings.push({ invariant: 'I8', detail: `${key} was ${show(last)} and then ${show(look)}` });
      }
      last = look;
    }
    const row = rows.get(key);
    if (last === null || !isOver(last)) continue;
    const inRepository = row === undefined ? 'absent' : row.state === 'failed' ? 'failed' : 'ordered';
    if (inRepository !== last.status || (inRepository === 'ordered' && row?.orderId !== last.orderId)) {
      findings.push({ invariant: 'I8', detail: `${key} was ${show(last)}, and the book says ${inRepository}` });
    }
  }
  return findings;
}

const isOver = ({ status }: Look): boolean => status === 'ordered' || status === 'failed';
const show = ({ status, orderId }: Look): string => (orderId === null ? status : `${status} ${orderId}`);

/** I3: a purchase that was answered 2xx may end `failed` only for a reason that the fault explains. */
export function judgeFailures(
  rows: ReadonlyMap<string, AuditedOrder>,
  wasAccepted: (key: string) => boolean,
  mayFail: readonly FailureReason[],
): Finding[] {
  return [...rows].flatMap(([key, { state, reason }]): Finding[] => {
    if (state !== 'failed' || reason === null || mayFail.includes(reason) || !wasAccepted(key)) return [];
    return [{ invariant: 'I3', detail: `${key} was answered 2xx and ended failed/${reason}` }];
  });
}

import { isLive, wasPaid, type FailureReason } from '../../src/core/order.js';
import type { AuditedOrder } from '../../src/core/ports/reconcile-repository.js';
import type { Finding } from './check-sale.js';

/** A change that was requested for an order. */
export type Move = 'pay' | 'cancel';

/** The answer to one GET of a purchase; `absent` is 404. */
export interface SeenStatus {
  readonly status: 'pending' | 'ordered' | 'failed' | 'absent';
  readonly orderId: string | null;
}

/** Answers to other requests than purchases. */
export interface ClientHistory {
  /** Order id → confirmed moves. */
  readonly moves: ReadonlyMap<string, ReadonlySet<Move>>;
  /** `userId/requestId` → its statuses, in the order of time. */
  readonly statuses: ReadonlyMap<string, readonly SeenStatus[]>;
  /** `userId/requestId` → units, for purchases whose last answer was `sold_out`. */
  readonly soldOut: ReadonlyMap<string, number>;
}

/** The state of the sale in MySQL and Redis. */
export interface HistoryRows {
  /** `userId/requestId` → row. */
  readonly rows: ReadonlyMap<string, AuditedOrder>;
  readonly unitsLeft: number;
}

/** Checks I6, I7 and I8 as clients can see them, for a sale at rest. */
export function judgeHistory(history: ClientHistory, rows: HistoryRows): Finding[] {
  return [...judgeMoves(history, rows), ...judgeRefusals(history, rows), ...judgeStatuses(history, rows)];
}

/** I6: no order was both paid and cancelled, and MySQL has every confirmed move. */
function judgeMoves({ moves }: ClientHistory, { rows }: HistoryRows): Finding[] {
  const findings: Finding[] = [];
  const stateOf = new Map([...rows.values()].map(({ orderId, state }) => [orderId, state]));
  for (const [orderId, confirmed] of moves) {
    if (confirmed.size > 1) findings.push({ invariant: 'I6', detail: `order ${orderId} was paid and cancelled` });
    const state = stateOf.get(orderId);
    for (const move of confirmed) {
      if (state !== undefined && (move === 'pay' ? wasPaid(state) : state === 'cancelled')) continue;
      findings.push({ invariant: 'I6', detail: `order ${orderId}: ${move} was confirmed, and it is ${state}` });
    }
  }
  return findings;
}

/** I7: no buyer got `sold_out` while enough units were left. Units that were returned later prove nothing. */
function judgeRefusals({ soldOut }: ClientHistory, { rows, unitsLeft }: HistoryRows): Finding[] {
  const cameBack = [...rows.values()].some(({ state }) => !isLive(state));
  if (cameBack) return [];
  const served = [...soldOut].find(([, quantity]) => quantity <= unitsLeft);
  if (served === undefined) return [];
  const [key, quantity] = served;
  return [{ invariant: 'I7', detail: `${key} (${quantity}) got sold_out, and ${unitsLeft} units are left` }];
}

/** I8: no client saw a purchase go back, and MySQL has the order that clients saw. */
function judgeStatuses({ statuses }: ClientHistory, { rows }: HistoryRows): Finding[] {
  const findings: Finding[] = [];
  for (const [key, seen] of statuses) {
    let last: SeenStatus | null = null;
    for (const next of seen) {
      if (last !== null && isOver(last) && (next.status !== last.status || next.orderId !== last.orderId)) {
        findings.push({ invariant: 'I8', detail: `${key} was ${show(last)} and then ${show(next)}` });
      }
      last = next;
    }
    const row = rows.get(key);
    if (last === null || !isOver(last)) continue;
    const inMysql = row === undefined ? 'absent' : row.state === 'failed' ? 'failed' : 'ordered';
    if (inMysql !== last.status || (inMysql === 'ordered' && row?.orderId !== last.orderId)) {
      findings.push({ invariant: 'I8', detail: `${key} was ${show(last)}, and is ${inMysql} in MySQL` });
    }
  }
  return findings;
}

const isOver = ({ status }: SeenStatus): boolean => status === 'ordered' || status === 'failed';
const show = ({ status, orderId }: SeenStatus): string => (orderId === null ? status : `${status} ${orderId}`);

/** I3: an accepted purchase may fail only for a reason that the fault explains. */
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

import { purchaseKeyAt, type BuyerFile } from '../../../bench/load/buyers.js';
import { createOrderAudit } from '../../invariants/order-audit.js';
import { checkSale, type ClientOutcome, type OpLog, type SaleFigures } from '../../invariants/check-sale.js';
import type { ClientHistory, Move } from '../../invariants/check-history.js';
import { bucketStatusOf } from '../harness/redis.js';
import type { StackControls } from '../harness/stack-controls.js';
import { OUTCOME, type SoldSale } from './buyers-process.js';

const WORDS: Readonly<Record<number, ClientOutcome>> = {
  [OUTCOME.ok]: 'ok',
  [OUTCOME.fail]: 'fail',
  [OUTCOME.unknown]: 'unknown',
};

/** Returns the answers to the buyers of a sale, for the checker. */
export function opLogOf(outcomes: Uint8Array, records: Buffer, file: BuyerFile): OpLog {
  const log = new Map<string, ClientOutcome>();
  for (const [buyer, code] of outcomes.entries()) {
    const word = WORDS[code];
    if (word !== undefined) log.set(purchaseKeyAt(records, { ...file, first: 0 }, buyer), word);
  }
  return log;
}

/** Counts buyers by their last answer. */
function countOutcomes(outcomes: Uint8Array): Readonly<Record<keyof typeof OUTCOME, number>> {
  const counts = { none: 0, ok: 0, fail: 0, unknown: 0 };
  const names = ['none', 'ok', 'fail', 'unknown'] as const;
  for (const code of outcomes) counts[names[code] ?? 'none']++;
  return counts;
}

export interface CheckedSale {
  readonly figures: SaleFigures;
  /** Whether Redis was compared. It is not if it may have lost or forgotten data of a closed sale. */
  readonly withRedis: boolean;
  readonly problems: readonly string[];
}

/** Returns the earliest open deadline, in Unix ms. Every unpaid order with an earlier deadline has ended. */
export async function expiredUntilMs({ mysql }: StackControls): Promise<number> {
  const sql = "SELECT MIN(expires_at) AS first FROM orders WHERE state = 'pending_payment'";
  const [row] = await mysql.query<{ first: Date | null }>(sql);
  return row?.first?.getTime() ?? Number.POSITIVE_INFINITY;
}

/** Returns whether a closed sale is at rest, except for unpaid orders, which `expiredUntilMs` covers. */
export async function isAtRest({ audit }: StackControls, saleId: string): Promise<boolean> {
  const sale = await audit.repository.findSale(saleId);
  if (sale?.state !== 'closed') return false;
  for (let bucket = 0; bucket < sale.buckets; bucket++) {
    if ((await audit.store.pendingCount({ saleId, bucket })) > 0) return false;
  }
  return (await audit.repository.undoneReleases(saleId)) === 0;
}

/** Checks I1 to I8 for a closed sale at rest, with the answers to its buyers. */
export async function checkSold(
  stack: StackControls,
  { saleId, outcomes, moves }: SoldSale,
  opLog: OpLog,
): Promise<CheckedSale> {
  const { sameServer } = await bucketStatusOf(stack, saleId);
  const sale = await stack.audit.repository.findSale(saleId);
  const withRedis = sameServer && sale?.retiredAtMs === null;
  const mysql = createOrderAudit(stack.mysql, { searchAll: false });
  // Redis may have lost data of this sale, so Redis is not compared
  const repository = withRedis
    ? mysql
    : { ...mysql, findSale: () => Promise.resolve(sale === null ? null : { ...sale, retiredAtMs: Date.now() }) };
  const store = withRedis ? stack.audit.store : { ...stack.audit.store, snapshot: () => Promise.resolve(null) };
  const history: ClientHistory = {
    moves: new Map<string, ReadonlySet<Move>>(moves.map(({ orderId, move }) => [orderId, new Set([move])])),
    statuses: new Map(),
    soldOut: new Map(),
  };
  const { figures, findings } = await checkSale(saleId, { repository, store }, opLog, {
    history,
    mayFail: ['units_lost'], // a killed Redis may lose everything after the last write of its log
  });
  const problems = findings.map(({ invariant, detail }) => `${invariant} ${detail}`);
  const { ok, unknown } = countOutcomes(outcomes);
  if (figures.rows < ok || figures.rows > ok + unknown) {
    problems.push(`I3 ${ok} purchases were accepted, ${unknown} may have been, and ${figures.rows} have a row`);
  }
  return { figures, withRedis, problems: problems.map((problem) => `sale ${saleId}: ${problem}`) };
}

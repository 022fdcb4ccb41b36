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

/** What the buyers of a sale were answered, for the checker. */
export function opLogOf(outcomes: Uint8Array, records: Buffer, file: BuyerFile): OpLog {
  const log = new Map<string, ClientOutcome>();
  for (const [buyer, code] of outcomes.entries()) {
    const word = WORDS[code];
    if (word !== undefined) log.set(purchaseKeyAt(records, { ...file, first: 0 }, buyer), word);
  }
  return log;
}

/** How many buyers ended with each answer. */
function countOutcomes(outcomes: Uint8Array): Readonly<Record<keyof typeof OUTCOME, number>> {
  const counts = { none: 0, ok: 0, fail: 0, unknown: 0 };
  const names = ['none', 'ok', 'fail', 'unknown'] as const;
  for (const code of outcomes) counts[names[code] ?? 'none']++;
  return counts;
}

/** What a checked sale came to. */
export interface CheckedSale {
  readonly figures: SaleFigures;
  /** Redis was compared; it is not where it may have lost data of a closed sale, or has forgotten it. */
  readonly withRedis: boolean;
  readonly problems: readonly string[];
}

/** Until when every unpaid order has ended, Unix ms: the earliest deadline that is still open. */
export async function expiredUntilMs({ mysql }: StackControls): Promise<number> {
  const sql = "SELECT MIN(expires_at) AS first FROM orders WHERE state = 'pending_payment'";
  const [row] = await mysql.query<{ first: Date | null }>(sql);
  return row?.first?.getTime() ?? Number.POSITIVE_INFINITY;
}

/** Whether nothing of a closed sale is on its way. Its unpaid orders have ended: `expiredUntilMs` says so for all sales. */
export async function isAtRest({ audit }: StackControls, saleId: string): Promise<boolean> {
  const sale = await audit.repository.findSale(saleId);
  if (sale?.state !== 'closed') return false;
  for (let bucket = 0; bucket < sale.buckets; bucket++) {
    if ((await audit.store.pendingCount({ saleId, bucket })) > 0) return false;
  }
  return (await audit.repository.undoneReleases(saleId)) === 0;
}

/** I1 to I8 for a closed sale at rest, with what its buyers saw. */
export async function checkSold(
  stack: StackControls,
  { saleId, outcomes, moves }: SoldSale,
  opLog: OpLog,
): Promise<CheckedSale> {
  const { sameServer } = await bucketStatusOf(stack, saleId);
  const sale = await stack.audit.repository.findSale(saleId);
  const withRedis = sameServer && sale?.retiredAtMs === null;
  const mysql = createOrderAudit(stack.mysql, { searchAll: false });
  // what Redis has of a sale that it may have lost data of is compared by whoever needs it, and not here
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
    mayFail: ['units_lost'], // a kill of Redis may cost what came after the last write of its log
  });
  const problems = findings.map(({ invariant, detail }) => `${invariant} ${detail}`);
  const { ok, unknown } = countOutcomes(outcomes);
  if (figures.rows < ok || figures.rows > ok + unknown) {
    problems.push(`I3 ${ok} purchases were accepted, ${unknown} may have been, and ${figures.rows} have a row`);
  }
  return { figures, withRedis, problems: problems.map((problem) => `sale ${saleId}: ${problem}`) };
}

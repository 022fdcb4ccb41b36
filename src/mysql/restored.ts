import { Bug } from '../core/errors.js';
import { actorColumn, insertAudit } from './audit-log.js';
import { execute, knex, now, select } from './knex.js';
import type { MysqlPool, Transaction } from './pool.js';

/** Where numbering continues in a restored database, so that no number is given out twice (decision 54). */
export interface RestoredMarks {
  /** Number of sales whose epoch was raised. */
  readonly sales: number;
  readonly epochsRaisedBy: number;
  /** The lowest id that a new sale can get, in decimal. */
  readonly nextSaleId: string;
  /** The lowest id that a new outbox row can get. Events are named after it. */
  readonly nextOutboxId: string;
  /** The new version under which the copy's admission rules were published again. Null if the copy has no rules. */
  readonly rulesVersion: number | null;
}

/**
 * Steps that exceed any number used between copy and loss. A sale is rebuilt a few times. A busy shop has some thousand
 * sales a year, and an api remembers as many unknown ids. Outbox: ten thousand rows a second for three years.
 */
const EPOCHS = 1000;
const RULE_VERSIONS = 1000;
const SALE_IDS = 10_000n;
const OUTBOX_IDS = 1_000_000_000_000n;

/**
 * Call it once after a restore, before programs start. All or nothing. A second call moves numbers on again and
 * rebuilds sales that are in Redis, which does no harm. @throws MysqlError
 */
export function markRestored(pool: MysqlPool, actor: string): Promise<RestoredMarks> {
  return pool.transaction(async (tx) => {
    // a retired sale was over before the copy was made, so nothing of it was under way
    const raised = knex('sales')
      .where({ retirement: 'none' })
      .update({ epoch: knex.raw('epoch + ?', [EPOCHS]) });
    const { affectedRows: sales } = await execute(tx, raised);
    // the copy names programs that held these leases at the time; none of them runs now
    for (const table of ['reconcile_leases', 'job_leases'] as const) await execute(tx, knex(table).delete());
    const at = new Date(0);
    const sale = { sku: '', title: '', price_cents: 0, stock: 0, limit_per_buyer: 1, buckets: 1 };
    const marks: RestoredMarks = {
      sales,
      epochsRaisedBy: EPOCHS,
      nextSaleId: await skipIds(tx, 'sales', { ...sale, opens_at: at, closes_at: at }, SALE_IDS),
      nextOutboxId: await skipIds(tx, 'outbox', { kind: 'none', key: '', payload: '', done_at: now() }, OUTBOX_IDS),
      rulesVersion: await publishRulesAgain(tx, actor),
    };
    await insertAudit(tx, { actor, action: 'database.restored', subject: 'database', before: null, after: marks });
    return marks;
  });
}

/** Advances the counter of a table, which its rows do not show. @param row is removed again. @returns the next id */
async function skipIds(tx: Transaction, table: string, row: object, ids: bigint): Promise<string> {
  const { insertId: next } = await execute(tx, knex(table).insert(row));
  if (!/^[1-9]\d*$/.test(next)) throw new Bug(`the next id of ${table} is not a number: ${next}`);
  const last = (BigInt(next) + ids).toString();
  await execute(tx, knex(table).insert({ ...row, id: last }));
  await execute(tx, knex(table).whereIn('id', [next, last]).delete());
  return (BigInt(last) + 1n).toString();
}

/** APIs ignore versions below the highest they know, which MySQL may have lost, also if the copy has none. A canary ends. */
async function publishRulesAgain(tx: Transaction, actor: string): Promise<number | null> {
  const newest = knex('entry_rules').select('version', 'rules_json').orderBy('version', 'desc').limit(1);
  const [row = { version: 0, rules_json: '{}' }] = await select(tx, newest);
  const again = { ...row, version: row.version + RULE_VERSIONS, actor: actorColumn(actor) };
  await execute(tx, knex('entry_rules').insert(again));
  return row.rules_json === '{}' ? null : again.version;
}

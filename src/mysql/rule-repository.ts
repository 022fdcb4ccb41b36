import type { RuleChange, RuleRepository, StoredInForce, StoredRules, StoreOutcome } from '../core/ports/rules.js';
import { actorColumn, insertAudit } from './audit-log.js';
import { MysqlError } from './errors.js';
import { ageOf, execute, knex, readJson, select } from './knex.js';
import type { MysqlPool, Statements } from './pool.js';

/** The rules of admission in MySQL: one row per version, never changed. */
export function createRuleRepository(pool: MysqlPool): RuleRepository {
  return {
    current: () => current(pool),
    async find(version): Promise<StoredRules | null> {
      const [row] = await select(pool, knex('entry_rules').select('version', 'rules_json').where({ version }));
      return row === undefined ? null : { version, rules: readJson(row.rules_json) };
    },
    /** If two processes store the same version at once, the primary key refuses the second. */
    async store(
      rules,
      expectedVersion,
      actor,
      { canary = null, action = 'rules.published', more } = {},
    ): Promise<StoreOutcome> {
      try {
        return await pool.transaction(async (tx) => {
          const before = await current(tx);
          if (before.version !== expectedVersion) return { outcome: 'version_conflict', version: before.version };
          const version = expectedVersion + 1;
          const [rules_json, canary_json] = [JSON.stringify(rules), canary && JSON.stringify(canary)];
          const row = { version, rules_json, canary_json, actor: actorColumn(actor) };
          await execute(tx, knex('entry_rules').insert(row));
          await insertAudit(tx, {
            actor,
            action,
            subject: 'rules:admission',
            before: { version: expectedVersion },
            after: { version, changed: changedLayers(before.rules, rules), ...more },
          });
          return { outcome: 'stored', version };
        });
      } catch (error) {
        if (!(error instanceof MysqlError) || error.kind !== 'duplicate') throw error;
        return { outcome: 'version_conflict', version: (await current(pool)).version };
      }
    },
    async ageMs(version): Promise<number | null> {
      const age = knex('entry_rules').select<{ readonly age_us: string }[]>(ageOf('created_at')).where({ version });
      const [row] = await select(pool, age);
      return row === undefined ? null : Number(row.age_us) / 1000;
    },
    async history(max): Promise<RuleChange[]> {
      const newest = knex('entry_rules').select('version', 'actor', 'created_at').orderBy('version', 'desc').limit(max);
      const rows = await select(pool, newest);
      return rows.map(({ version, actor, created_at }) => ({ version, actor, atMs: created_at.getTime() }));
    },
  };
}

async function current(on: Statements): Promise<StoredInForce> {
  const newest = knex('entry_rules').select('version', 'rules_json', 'canary_json').orderBy('version', 'desc').limit(1);
  const [row] = await select(on, newest);
  if (row === undefined) return { version: 0, rules: {}, canary: null };
  // A row that was written by hand may hold no JSON. The code that reads it as rules refuses it.
  return { version: row.version, rules: readJson(row.rules_json), canary: readJson(row.canary_json) };
}

/** Names the changed layers for the audit log. The rows of both versions hold the rules. */
function changedLayers(before: unknown, after: object): string[] {
  const old = new Map(Object.entries(typeof before === 'object' && before !== null ? before : {}));
  return Object.entries(after)
    .filter(([layer, rules]) => JSON.stringify(rules) !== JSON.stringify(old.get(layer)))
    .map(([layer]) => layer);
}

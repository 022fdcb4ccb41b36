import type { RuleChange, RuleRepository, StoredRules, StoreOutcome } from '../core/ports/rules.js';
import { insertAudit } from './audit-log.js';
import { MysqlError } from './errors.js';
import type { MysqlPool, Statements } from './pool.js';

interface RulesRow {
  readonly version: number;
  readonly rules_json: string;
}

interface ChangeRow {
  readonly version: number;
  readonly actor: string;
  readonly created_at: Date;
}

const ACTOR_MAX = 128;
const NEWEST = 'SELECT version, rules_json FROM entry_rules ORDER BY version DESC LIMIT 1';

/** The rules of admission in MySQL: one row per version, never changed. */
export function createRuleRepository(pool: MysqlPool): RuleRepository {
  return {
    current: () => current(pool),
    async find(version): Promise<StoredRules | null> {
      const sql = 'SELECT version, rules_json FROM entry_rules WHERE version = ?';
      const [row] = await pool.query<RulesRow>(sql, [version]);
      return row === undefined ? null : storedOf(row);
    },
    store: (rules, expectedVersion, actor) => store(pool, rules, expectedVersion, actor),
    async history(max): Promise<RuleChange[]> {
      const sql = 'SELECT version, actor, created_at FROM entry_rules ORDER BY version DESC LIMIT ?';
      const rows = await pool.query<ChangeRow>(sql, [max]);
      return rows.map(({ version, actor, created_at }) => ({ version, actor, atMs: created_at.getTime() }));
    },
  };
}

async function current(sql: Statements): Promise<StoredRules> {
  const [row] = await sql.query<RulesRow>(NEWEST);
  return row === undefined ? { version: 0, rules: {} } : storedOf(row);
}

/** Of two who store the same version at once, the primary key refuses one. */
async function store(pool: MysqlPool, rules: object, expectedVersion: number, actor: string): Promise<StoreOutcome> {
  try {
    return await pool.transaction(async (tx) => {
      const before = await current(tx);
      if (before.version !== expectedVersion) return { outcome: 'version_conflict', version: before.version };
      const version = expectedVersion + 1;
      await tx.execute('INSERT INTO entry_rules (version, rules_json, actor) VALUES (?, ?, ?)', [
        version,
        JSON.stringify(rules),
        actor.slice(0, ACTOR_MAX),
      ]);
      await insertAudit(tx, {
        actor,
        action: 'rules.published',
        subject: 'rules:entry',
        before: { version: expectedVersion },
        after: { version, changed: changedLayers(before.rules, rules) },
      });
      return { outcome: 'stored', version };
    });
  } catch (error) {
    if (!(error instanceof MysqlError) || error.kind !== 'duplicate') throw error;
    return { outcome: 'version_conflict', version: (await current(pool)).version };
  }
}

/** The audit log names the layers; what has changed in them stands in the rows of both versions. */
function changedLayers(before: unknown, after: object): string[] {
  const old = new Map(Object.entries(typeof before === 'object' && before !== null ? before : {}));
  return Object.entries(after)
    .filter(([layer, rules]) => JSON.stringify(rules) !== JSON.stringify(old.get(layer)))
    .map(([layer]) => layer);
}

function storedOf({ version, rules_json: text }: RulesRow): StoredRules {
  return { version, rules: readJson(text) };
}

/** A text that is no JSON, written by hand, is passed on as it is; the reader refuses it as rules. */
function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

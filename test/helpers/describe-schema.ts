import type { Connection } from 'mysql2/promise';

interface ColumnRow {
  readonly tab: string;
  readonly col: string;
  readonly position: number;
  readonly type: string;
  readonly nullable: 'YES' | 'NO';
  readonly def: string | null;
  readonly extra: string;
  readonly expression: string | null;
  readonly collation: string | null;
}

interface KeyRow {
  readonly tab: string;
  readonly name: string;
  readonly non_unique: number | string;
  readonly cols: string;
}

// Columns have aliases, because MySQL names columns of its information schema in capitals. Rows are sorted here,
// because each server has another collation.
const COLUMNS = `SELECT table_name AS tab, column_name AS col, ordinal_position AS position, column_type AS type,
    is_nullable AS nullable, column_default AS def, extra AS extra, generation_expression AS expression,
    collation_name AS collation
  FROM information_schema.columns WHERE table_schema = ? AND table_name NOT LIKE 'knex%'`;
const KEYS = `SELECT table_name AS tab, index_name AS name, MAX(non_unique) AS non_unique,
    GROUP_CONCAT(column_name ORDER BY seq_in_index) AS cols
  FROM information_schema.statistics WHERE table_schema = ? AND table_name NOT LIKE 'knex%'
  GROUP BY table_name, index_name`;

/** Describes the schema of a database as text that reads like SQL and is the same on every MySQL and MariaDB. */
export async function describeSchema(connection: Connection, database: string): Promise<string> {
  const [columns] = (await connection.query(COLUMNS, [database])) as unknown as [ColumnRow[]];
  const [keys] = (await connection.query(KEYS, [database])) as unknown as [KeyRow[]];
  columns.sort((a, b) => a.position - b.position);
  keys.sort((a, b) => byName(a.name, b.name));
  const lines: string[] = [];
  for (const table of [...new Set(columns.map(({ tab }) => tab))].sort(byName)) {
    lines.push(`CREATE TABLE ${table} (`);
    for (const column of columns.filter(({ tab }) => tab === table)) lines.push(`  ${columnText(column)}`);
    for (const key of keys.filter(({ tab }) => tab === table)) lines.push(`  ${keyText(key)}`);
    lines.push(');', '');
  }
  return lines.join('\n');
}

/** Sorts names like MariaDB: case-insensitive, with `_` after the letters. */
function byName(a: string, b: string): number {
  const [one, other] = [a.toUpperCase(), b.toUpperCase()];
  return one < other ? -1 : one > other ? 1 : 0;
}

function columnText({ col, type, nullable, def, extra, expression, collation }: ColumnRow): string {
  const parts = [col, type.toLowerCase().replace(/\b((?:big|small|tiny|medium)?int)\(\d+\)/, '$1')];
  if (collation !== null) parts.push(`COLLATE ${collation}`);
  if (expression) parts.push(`AS (${plain(expression)}) VIRTUAL`);
  else if (nullable === 'NO') parts.push('NOT NULL');
  if (def !== null && def !== 'NULL') parts.push(`DEFAULT ${plain(def).replace(/^'(.*)'$/, '$1')}`);
  if (/auto_increment/i.test(extra)) parts.push('AUTO_INCREMENT');
  if (/on update/i.test(extra)) parts.push('ON UPDATE current_timestamp(3)');
  return parts.join(' ');
}

/**
 * Normalises expressions, which MySQL and MariaDB print with different quotes, brackets, character sets
 * (`_utf8mb4'paid'`) and case.
 */
const plain = (expression: string): string =>
  expression
    .toLowerCase()
    .replaceAll(/\bisnull\((`\w+`)\)/g, '$1 is null') // before 8.0.17
    .replaceAll(/(?<![a-z0-9_])_[a-z0-9]+\\?'/g, "'")
    .replaceAll(/[\\`()\s]/g, '')
    .replaceAll('current_timestamp3', 'current_timestamp(3)');

function keyText({ name, non_unique: nonUnique, cols }: KeyRow): string {
  if (name === 'PRIMARY') return `PRIMARY KEY (${cols})`;
  return `${Number(nonUnique) === 0 ? 'UNIQUE KEY' : 'KEY'} ${name} (${cols})`;
}

import type { Knex } from 'knex';

/** Every version of the rules of the entry, whole: people write them, so there are never many. */
const ENTRY_RULES = `CREATE TABLE IF NOT EXISTS entry_rules (
  version INT UNSIGNED NOT NULL PRIMARY KEY,
  rules_json MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  actor VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  created_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`;

/** May be repeated. */
export async function up(knex: Knex): Promise<void> {
  await knex.raw(ENTRY_RULES);
}

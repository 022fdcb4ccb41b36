import type { Knex } from 'knex';

/** How a refund is tried. One statement, so that a killed migrator leaves all of it or nothing. */
const ATTEMPT_COLUMNS = `ALTER TABLE refunds
  ADD COLUMN attempts INT UNSIGNED NOT NULL DEFAULT 0,
  ADD COLUMN available_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  ADD COLUMN last_error VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  ADD KEY due (state, available_at)`;

/** May be repeated: MySQL knows no ADD COLUMN IF NOT EXISTS. */
export async function up(knex: Knex): Promise<void> {
  if (await knex.schema.hasColumn('refunds', 'attempts')) return;
  await knex.raw(ATTEMPT_COLUMNS);
}

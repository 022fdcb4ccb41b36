import type { Knex } from 'knex';

/** What became of the replays of a dead letter. One statement, so that a killed migrator leaves all of it or nothing. */
const REPLAY_COLUMNS = `ALTER TABLE dead_letters
  ADD COLUMN replays INT UNSIGNED NOT NULL DEFAULT 0,
  ADD COLUMN replay_started_at DATETIME(3) NULL,
  ADD COLUMN note VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL`;

/** May be repeated: MySQL knows no ADD COLUMN IF NOT EXISTS. */
export async function up(knex: Knex): Promise<void> {
  if (await knex.schema.hasColumn('dead_letters', 'note')) return;
  await knex.raw(REPLAY_COLUMNS);
}

import type { Knex } from 'knex';

/** The same types as in 0001: ids are ASCII and compare byte by byte, times are UTC. */
const ID = 'VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin';
const WORD = 'VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin';
const NAME = 'VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const TEXT = 'VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const LONG_TEXT = 'MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const NOW = 'DEFAULT CURRENT_TIMESTAMP(3)';
const TABLE = 'ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** What is to be mended; `subject` is sale, user and request, so two ids and a number fit into it. */
const COMPENSATION_JOBS = `CREATE TABLE IF NOT EXISTS compensation_jobs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind ${WORD} NOT NULL,
  subject VARCHAR(160) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  sale_id BIGINT UNSIGNED NOT NULL,
  batch_id ${ID} NULL,
  user_id ${ID} NULL,
  request_id ${ID} NULL,
  detail ${TEXT} NOT NULL,
  state ENUM('pending', 'compensated', 'failed_final') NOT NULL DEFAULT 'pending',
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  available_at DATETIME(3) NOT NULL ${NOW},
  last_error ${TEXT} NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY subject (subject, kind),
  KEY due (state, available_at),
  KEY batch (batch_id),
  KEY sale (sale_id, state)
) ${TABLE}`;

const RECONCILE_RUNS = `CREATE TABLE IF NOT EXISTS reconcile_runs (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sale_id BIGINT UNSIGNED NULL,
  applied TINYINT UNSIGNED NOT NULL,
  actor ${NAME} NOT NULL,
  started_at DATETIME(3) NOT NULL ${NOW},
  finished_at DATETIME(3) NULL,
  outcome ${WORD} NULL,
  figures_json ${LONG_TEXT} NULL,
  findings_json ${LONG_TEXT} NULL,
  KEY sale (sale_id, id)
) ${TABLE}`;

/** One row per sale that was ever reconciled; free when `leased_until` has passed. */
const RECONCILE_LEASES = `CREATE TABLE IF NOT EXISTS reconcile_leases (
  sale_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  owner ${NAME} NOT NULL,
  leased_until DATETIME(3) NOT NULL
) ${TABLE}`;

/** Each step may be repeated: MySQL commits DDL at once, so a killed migrator leaves some of them done. */
export async function up(knex: Knex): Promise<void> {
  for (const table of [COMPENSATION_JOBS, RECONCILE_RUNS, RECONCILE_LEASES]) await knex.raw(table);
}

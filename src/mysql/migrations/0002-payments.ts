import type { Knex } from 'knex';

/** The same types as in 0001: ids are ASCII and compare byte by byte, money is in integer cents, times are UTC. */
const ID = 'VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin';
const WORD = 'VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin';
const NOW = 'DEFAULT CURRENT_TIMESTAMP(3)';
const TABLE = 'ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

/** Every payment that came, whatever became of it. Its key is what makes a payment that is told twice count once. */
const PAYMENTS = `CREATE TABLE IF NOT EXISTS payments (
  payment_id ${ID} NOT NULL PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY order_id (order_id)
) ${TABLE}`;

/** The payments of which the money is owed back, with the reason. `due` until somebody has paid it back. */
const REFUNDS = `CREATE TABLE IF NOT EXISTS refunds (
  payment_id ${ID} NOT NULL PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  reason ${WORD} NOT NULL,
  state ENUM('due', 'refunded') NOT NULL DEFAULT 'due',
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  KEY order_id (order_id),
  KEY state (state, created_at)
) ${TABLE}`;

/** Each step may be repeated: MySQL commits DDL at once, so a killed migrator leaves some of them done. */
export async function up(knex: Knex): Promise<void> {
  for (const table of [PAYMENTS, REFUNDS]) await knex.raw(table);
}

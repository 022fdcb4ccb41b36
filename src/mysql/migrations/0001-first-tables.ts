import type { Knex } from 'knex';

/**
 * Ids are ASCII and differ by case, so they compare byte by byte. Money in integer cents, times in UTC: every session
 * of ours runs with time_zone '+00:00', which also rules CURRENT_TIMESTAMP. Unsigned columns refuse what must not be.
 */
const ID = 'VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin';
const NAME = 'VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const WORD = 'VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin';
const LONG_TEXT = 'MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const NOW = 'DEFAULT CURRENT_TIMESTAMP(3)';
/** Never the defaults of the server: an ENUM would take its character set from there. */
const TABLE = 'ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';

const SALES = `CREATE TABLE IF NOT EXISTS sales (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sku ${NAME} NOT NULL,
  title VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  price_cents INT UNSIGNED NOT NULL,
  stock INT UNSIGNED NOT NULL,
  sold INT UNSIGNED NOT NULL DEFAULT 0,
  limit_per_buyer SMALLINT UNSIGNED NOT NULL,
  buckets SMALLINT UNSIGNED NOT NULL,
  opens_at DATETIME(3) NOT NULL,
  closes_at DATETIME(3) NOT NULL,
  state ENUM('draft', 'warm', 'open', 'paused', 'closed') NOT NULL DEFAULT 'draft',
  epoch INT UNSIGNED NOT NULL DEFAULT 1,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY state (state)
) ${TABLE}`;

/**
 * Takes more than 10,000 inserts a second, so every byte and index is weighed (docs/decisions/0006): states are an ENUM
 * of one byte, state and times have defaults that keep them out of the statement, the primary key grows with time.
 * `active_key` is the sale while the order is live and its sale allows one per buyer, else NULL: with the buyer it is
 * unique, so no buyer has two. `batch` answers what became of a batch; `expiry` feeds the sweep of unpaid orders.
 */
const ORDERS = `CREATE TABLE IF NOT EXISTS orders (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  sale_id BIGINT UNSIGNED NOT NULL,
  user_id ${ID} NOT NULL,
  request_id ${ID} NOT NULL,
  batch_id ${ID} NOT NULL,
  quantity SMALLINT UNSIGNED NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  state ENUM('pending_payment', 'paid', 'cancelled', 'expired', 'failed') NOT NULL DEFAULT 'pending_payment',
  reason ${WORD} NULL,
  one_per_buyer TINYINT UNSIGNED NOT NULL,
  active_key BIGINT UNSIGNED
    GENERATED ALWAYS AS (IF(one_per_buyer = 1 AND state IN ('pending_payment', 'paid'), sale_id, NULL)) VIRTUAL,
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  expires_at DATETIME(3) NULL,
  paid_at DATETIME(3) NULL,
  UNIQUE KEY request (user_id, sale_id, request_id),
  UNIQUE KEY active (active_key, user_id),
  KEY batch (batch_id),
  KEY expiry (state, expires_at)
) ${TABLE}`;

/** `due` ends in the primary key, so the oldest undone rows of a kind are read without sorting. */
const OUTBOX = `CREATE TABLE IF NOT EXISTS outbox (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind ${WORD} NOT NULL,
  \`key\` ${ID} NOT NULL,
  payload ${LONG_TEXT} NOT NULL,
  available_at DATETIME(3) NOT NULL ${NOW},
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  created_at DATETIME(3) NOT NULL ${NOW},
  done_at DATETIME(3) NULL,
  KEY due (kind, done_at)
) ${TABLE}`;

/** What stands in a dead letter is not ours to trust: text columns take anything, cut to length. */
const DEAD_LETTERS = `CREATE TABLE IF NOT EXISTS dead_letters (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  message_id ${NAME} NOT NULL,
  consumer_group ${NAME} NOT NULL,
  origin_topic ${NAME} NOT NULL,
  sale_id ${NAME} NULL,
  batch_id ${NAME} NULL,
  body ${LONG_TEXT} NOT NULL,
  reason ${WORD} NOT NULL,
  detail VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  state ENUM('parked', 'replayed', 'discarded') NOT NULL DEFAULT 'parked',
  attempts INT UNSIGNED NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY message (message_id, consumer_group),
  KEY state (state, created_at),
  KEY batch (batch_id)
) ${TABLE}`;

/** All 256 rows exist from the start: taking one is an UPDATE, so two processes can't take the same. */
const WORKER_SLOTS = `CREATE TABLE IF NOT EXISTS worker_slots (
  slot TINYINT UNSIGNED NOT NULL PRIMARY KEY,
  owner ${ID} NULL,
  leased_until DATETIME(3) NOT NULL DEFAULT '2000-01-01 00:00:00.000',
  UNIQUE KEY owner (owner),
  KEY leased (leased_until)
) ${TABLE}`;

const AUDIT_LOG = `CREATE TABLE IF NOT EXISTS audit_log (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  actor ${NAME} NOT NULL,
  action ${NAME} NOT NULL,
  subject ${NAME} NOT NULL,
  before_json ${LONG_TEXT} NULL,
  after_json ${LONG_TEXT} NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY subject (subject, id)
) ${TABLE}`;

const SLOTS = 256;

/** Each step may be repeated: MySQL commits DDL at once, so a killed migrator leaves some of them done. */
export async function up(knex: Knex): Promise<void> {
  for (const table of [SALES, ORDERS, OUTBOX, DEAD_LETTERS, WORKER_SLOTS, AUDIT_LOG]) await knex.raw(table);
  const slots = Array.from({ length: SLOTS }, (_, slot) => `(${slot})`).join(', ');
  await knex.raw(`INSERT INTO worker_slots (slot) VALUES ${slots} ON DUPLICATE KEY UPDATE slot = worker_slots.slot`);
}

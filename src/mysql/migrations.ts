import type { Knex } from 'knex';
import { CONVERT, convertAmounts } from './smallest-units.js';
import type { SchemaChanges } from './schema-changes.js';

export interface NamedMigration {
  /** Never changes, because the database remembers it. */
  readonly name: string;
  readonly up: (changes: SchemaChanges) => Promise<void>;
}

/**
 * Ids are ASCII and compare byte by byte. Money is in the smallest unit of its currency. Times are UTC: our sessions
 * set time_zone '+00:00', which also applies to CURRENT_TIMESTAMP. Unsigned columns refuse negative values.
 */
const ID = 'VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin';
const NAME = 'VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const WORD = 'VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin';
const TEXT = 'VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const LONG_TEXT = 'MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin';
const NOW = 'DEFAULT CURRENT_TIMESTAMP(3)';
/** Set explicitly rather than taken from the server, because an ENUM would take its character set from there. */
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
 * Takes more than 10,000 inserts a second, so bytes and indexes count (docs/decisions/0006). Defaults keep states and
 * times out of the statement, and the primary key grows with time. `active_key` is the sale while a one-per-buyer order
 * is live, else NULL, so a buyer cannot have two. `batch` finds the orders of a batch, `expiry` unpaid orders.
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

/** `due` ends in the primary key, so that the oldest undone rows of a kind are read without sorting. */
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

/** The contents of a dead letter are not trusted, so text columns take anything, cut to length. */
const DEAD_LETTERS = `CREATE TABLE IF NOT EXISTS dead_letters (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  message_id ${NAME} NOT NULL,
  consumer_group ${NAME} NOT NULL,
  origin_topic ${NAME} NOT NULL,
  sale_id ${NAME} NULL,
  batch_id ${NAME} NULL,
  body ${LONG_TEXT} NOT NULL,
  reason ${WORD} NOT NULL,
  detail ${TEXT} NOT NULL,
  state ENUM('parked', 'replayed', 'discarded') NOT NULL DEFAULT 'parked',
  attempts INT UNSIGNED NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY message (message_id, consumer_group),
  KEY state (state, created_at),
  KEY batch (batch_id)
) ${TABLE}`;

/** All slots exist from the start. Taking one is an UPDATE, so two processes cannot take the same slot. */
const SLOTS = 256;
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

/** Every reported payment, regardless of its outcome. The key counts a repeated report once. */
const PAYMENTS = `CREATE TABLE IF NOT EXISTS payments (
  payment_id ${ID} NOT NULL PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY order_id (order_id)
) ${TABLE}`;

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

/** Each paid order has one coupon, permanently: the order is the key. `buyer` finds the coupons of a buyer. */
const COUPONS = `CREATE TABLE IF NOT EXISTS coupons (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  sale_id BIGINT UNSIGNED NOT NULL,
  user_id ${ID} NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY buyer (user_id)
) ${TABLE}`;

const REPLAY_COLUMNS = `ALTER TABLE dead_letters
  ADD COLUMN replays INT UNSIGNED NOT NULL DEFAULT 0,
  ADD COLUMN replay_started_at DATETIME(3) NULL,
  ADD COLUMN note ${TEXT} NULL`;

/** At most one parked dead letter per batch. Of several older ones, only the oldest counts. */
const PARKED_BATCH = `ALTER TABLE dead_letters
  ADD COLUMN parked_batch ${ID} NULL,
  ADD UNIQUE KEY parked_batch (parked_batch)`;
const MARK_PARKED_BATCHES = `UPDATE dead_letters AS letter
  JOIN (SELECT MIN(id) AS id FROM dead_letters
    WHERE state = 'parked' AND reason IN ('retries_exhausted', 'unknown_sale')
      AND consumer_group IN ('seckill-order-writer', 'seckill-order-writer-redrive')
    GROUP BY batch_id) AS oldest ON oldest.id = letter.id
  SET letter.parked_batch = letter.batch_id`;

/** Repairs to be done. `subject` consists of sale, user and request, so two ids and a number must fit into it. */
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

/** Each sale that was ever reconciled has one row. The lease is free when `leased_until` has passed. */
const RECONCILE_LEASES = `CREATE TABLE IF NOT EXISTS reconcile_leases (
  sale_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  owner ${NAME} NOT NULL,
  leased_until DATETIME(3) NOT NULL
) ${TABLE}`;

const JOB_LEASES = `CREATE TABLE IF NOT EXISTS job_leases (
  job ${NAME} NOT NULL PRIMARY KEY,
  owner ${NAME} NOT NULL,
  leased_until DATETIME(3) NOT NULL
) ${TABLE}`;

const ATTEMPT_COLUMNS = `ALTER TABLE refunds
  ADD COLUMN attempts INT UNSIGNED NOT NULL DEFAULT 0,
  ADD COLUMN available_at DATETIME(3) NOT NULL ${NOW},
  ADD COLUMN last_error ${TEXT} NULL,
  ADD KEY due (state, available_at)`;

/** Committed before the provider is asked. `version` rises on open and lease, so no keeper closes a reopened charge. */
const PAYMENT_ATTEMPTS = `CREATE TABLE IF NOT EXISTS payment_attempts (
  order_id BIGINT UNSIGNED NOT NULL,
  \`key\` ${ID} NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  state ENUM('open', 'charged', 'declined', 'not_charged') NOT NULL DEFAULT 'open',
  version INT UNSIGNED NOT NULL DEFAULT 0,
  opened_at DATETIME(3) NOT NULL ${NOW},
  available_at DATETIME(3) NOT NULL ${NOW},
  last_error ${TEXT} NULL,
  PRIMARY KEY (order_id, \`key\`),
  KEY due (state, available_at)
) ${TABLE}`;

/** The time until which a keeper may be asking the provider for a refund. NULL while no keeper asks. */
const REFUND_LEASE_COLUMN = 'ALTER TABLE refunds ADD COLUMN leased_until DATETIME(3) NULL';

/** Every version of the admission rules, in full. People write the rules, so there are never many versions. */
const ENTRY_RULES = `CREATE TABLE IF NOT EXISTS entry_rules (
  version INT UNSIGNED NOT NULL PRIMARY KEY,
  rules_json ${LONG_TEXT} NOT NULL,
  actor ${NAME} NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW}
) ${TABLE}`;

/** Beside the rules, because the previous release would refuse rules that contain it. Null: no canary runs. */
const RULES_CANARY = `ALTER TABLE entry_rules ADD COLUMN canary_json ${LONG_TEXT} NULL`;

/** Where the orders of a sale are in `orders` (src/mysql/order-ranges.ts). */
const ORDER_RANGES = `CREATE TABLE IF NOT EXISTS order_ranges (
  sale_id BIGINT UNSIGNED NOT NULL,
  first_id BIGINT UNSIGNED NOT NULL,
  last_id BIGINT UNSIGNED NOT NULL,
  orders INT UNSIGNED NOT NULL,
  PRIMARY KEY (sale_id, first_id)
) ${TABLE}`;
/** Number of rows of `orders` that one statement of a migration reads, in some tens of ms. */
const WINDOW_ROWS = 10_000;
/** Higher than any order id, because ids have 63 bits. */
const ID_MAX = '9223372036854775807';
/** Orders of a sale that were minted within 16 ms form one range, because an id has 22 bits below its millisecond. */
const RANGE_BITS = 26;
const FILL_RANGES = `INSERT INTO order_ranges (sale_id, first_id, last_id, orders)
  SELECT sale_id, MIN(id), MAX(id), COUNT(*) FROM orders
    WHERE id > CAST(? AS UNSIGNED) AND id <= CAST(? AS UNSIGNED) GROUP BY sale_id, id >> ${RANGE_BITS}
  ON DUPLICATE KEY UPDATE last_id = GREATEST(order_ranges.last_id, VALUES(last_id)),
    orders = GREATEST(order_ranges.orders, VALUES(orders))`;

/** The index `retirement` finds closed sales that are still in Redis, no matter how many sales there ever were. */
const RETIREMENT_COLUMNS = `ALTER TABLE sales
  ADD COLUMN closed_at DATETIME(3) NULL,
  ADD COLUMN retired_at DATETIME(3) NULL,
  ADD COLUMN retirement ENUM('none', 'begun', 'done') NOT NULL DEFAULT 'none',
  ADD KEY retirement (state, retirement, closes_at)`;

/** Replaces `due`. It finds due rows in order, past done and waiting rows, at the cost of the old index. */
const OUTBOX_DUE_AT = 'ALTER TABLE outbox ADD KEY due_at (kind, done_at, available_at), DROP KEY due';

/** `due_at` is when the keeper next acts on the sale. NULL if an operator runs it, or once it has been compared. */
const SCHEDULE_COLUMNS = `ALTER TABLE sales
  ADD COLUMN warms_at DATETIME(3) NULL,
  ADD COLUMN compared_at DATETIME(3) NULL,
  ADD COLUMN compare_after DATETIME(3) NULL,
  ADD COLUMN due_at DATETIME(3) GENERATED ALWAYS AS (
    CASE
      WHEN warms_at IS NULL OR compared_at IS NOT NULL THEN NULL
      WHEN state IN ('draft', 'warm') THEN warms_at
      WHEN state = 'closed' THEN COALESCE(compare_after, closes_at)
      ELSE closes_at
    END) VIRTUAL,
  ADD KEY due (due_at),
  ADD KEY opens (opens_at),
  ADD KEY sku (sku)`;

/** A single row. Each change of the calendar locks it, so that two concurrent changes cannot create an overlap. */
const SALE_CALENDAR = `CREATE TABLE IF NOT EXISTS sale_calendar (
  id TINYINT UNSIGNED NOT NULL PRIMARY KEY
) ${TABLE}`;

/** Sales that are older than currencies were sold in the default currency. */
const CURRENCY_COLUMN = `ALTER TABLE sales
  ADD COLUMN currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'EUR'`;

/** Changes of loaded sales that must also be made in Redis. The index begins with `state`. */
const SALE_EDITS = `CREATE TABLE IF NOT EXISTS sale_edits (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  sale_id BIGINT UNSIGNED NOT NULL,
  units INT NOT NULL,
  epoch INT UNSIGNED NOT NULL,
  state ENUM('begun', 'done', 'refused') NOT NULL DEFAULT 'begun',
  actor ${NAME} NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  KEY state (state, id),
  KEY sale (sale_id, state)
) ${TABLE}`;

/** Indexes for paged lists. Each has the column of the filter first, then the columns of the sort. */
const AUDIT_INDEXES = `ALTER TABLE audit_log ADD KEY actor (actor, id), ADD KEY action (action, id),
  ADD KEY created (created_at)`;
const DEAD_LETTER_INDEXES = 'ALTER TABLE dead_letters ADD KEY created (created_at), ADD KEY sale (sale_id, id)';
const REFUND_INDEXES = 'ALTER TABLE refunds ADD KEY created (created_at, payment_id)';
/** Replaces `state`. Finds closed sales, last closed first, and sales that are over but not closed. */
const SALE_INDEXES = 'ALTER TABLE sales ADD KEY state_closes (state, closes_at), DROP KEY state';
/** For traces: finds outbox rows of the minute in which an order was created or moved. A batch has one row. */
const OUTBOX_CREATED = 'ALTER TABLE outbox ADD KEY created (created_at)';

/** JSON. Not a column of `orders`, because MariaDB would copy the table and block writers (docs/decisions/0031). */
const ORDER_METADATA = `CREATE TABLE IF NOT EXISTS order_metadata (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  metadata VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
) ${TABLE}`;

/** Copied from the tables, so that orders move unchanged. An index by sale replaces `order_ranges` and live indexes. */
const ARCHIVES = ['orders', 'payments', 'coupons'];
const ORDERS_ARCHIVE_INDEXES = `ALTER TABLE orders_archive DROP KEY active, DROP KEY expiry, ADD KEY sale (sale_id, id)`;
/** `archiving` means that the orders of the sale are moving to the archive, `archived` that all of them are there. */
const ARCHIVE_STATES = `ALTER TABLE sales MODIFY COLUMN retirement
  ENUM('none', 'begun', 'done', 'archiving', 'archived') NOT NULL DEFAULT 'none'`;

/** Providers use longer ids. A VARCHAR up to 255 bytes grows online. If a server needs a copy, the statement fails. */
const USER_ID = 'VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin';
const SUBJECT = 'VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin';
const ONLINE = 'ALGORITHM=INPLACE, LOCK=NONE';
const WITH_USER_ID = ['orders', 'orders_archive', 'coupons', 'coupons_archive'];

/** We number the rows without gaps, because a reader of all rows after a number must not miss any. */
const REVOCATIONS = `CREATE TABLE IF NOT EXISTS revocations (
  number INT UNSIGNED NOT NULL PRIMARY KEY,
  user_id ${USER_ID} NULL,
  issued_before DATETIME(3) NULL,
  token_id ${USER_ID} NULL,
  actor ${NAME} NOT NULL,
  created_at DATETIME(3) NOT NULL ${NOW}
) ${TABLE}`;

/** When the archive next handles a sale. The index gives due sales in order. `due_at` is NULL for a retired sale. */
const ARCHIVE_AFTER = `ALTER TABLE sales
  ADD COLUMN archive_after DATETIME(3) NULL,
  ADD KEY archive (retirement, archive_after, retired_at),
  MODIFY COLUMN due_at DATETIME(3) GENERATED ALWAYS AS (
    CASE
      WHEN warms_at IS NULL OR compared_at IS NOT NULL OR retirement <> 'none' THEN NULL
      WHEN state IN ('draft', 'warm') THEN warms_at
      WHEN state = 'closed' THEN COALESCE(compare_after, closes_at)
      ELSE closes_at
    END) VIRTUAL`;

const RUN_INDEXES = 'ALTER TABLE reconcile_runs ADD KEY started (started_at)';

/** A row exists if the caller named a trace. Trace ids are random, so their index costs more than the primary key. */
const ORDER_TRACES = `CREATE TABLE IF NOT EXISTS order_traces (
  order_id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
  trace_id BINARY(16) NOT NULL,
  KEY trace (trace_id)
) ${TABLE}`;
const ORDER_TRACES_ARCHIVE = 'CREATE TABLE IF NOT EXISTS order_traces_archive LIKE order_traces';

/** Names and details come from the provider, so they may be any text. */
const PAYMENT_CASES = `CREATE TABLE IF NOT EXISTS payment_cases (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  kind ${WORD} NOT NULL,
  subject ${USER_ID} NOT NULL,
  payment_id ${ID} NULL,
  order_id BIGINT UNSIGNED NULL,
  amount_cents BIGINT UNSIGNED NULL,
  currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NULL,
  detail ${TEXT} NOT NULL,
  state ENUM('open', 'closed') NOT NULL DEFAULT 'open',
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY subject (subject, kind),
  KEY state (state)
) ${TABLE}`;

/** For warehouses: finds the orders that were paid within a period. Ends in the primary key. */
const PAYMENT_TIME = (table: string): string => `ALTER TABLE ${table} ADD KEY created (created_at)`;

async function paymentTimes(changes: SchemaChanges): Promise<void> {
  for (const table of ['payments', 'payments_archive']) {
    await changes.alter(table, PAYMENT_TIME(table), { index: 'created' });
  }
}

/** Refund or dispute of a paid order. NULL for most orders, so no row grows or is rewritten (decision 61). */
const MONEY_COLUMNS = `
  ADD COLUMN after_paid ENUM('refunding', 'refunded', 'returned', 'disputed') NULL,
  ADD COLUMN refunded_cents BIGINT UNSIGNED NULL`;

/** NULL stands for the worker's ORDER_PAYMENT_WINDOW_MS. */
const PAYMENT_WINDOW = 'ALTER TABLE sales ADD COLUMN payment_window_ms INT UNSIGNED NULL';

/** NULL if coupons of the sale have no code. */
const COUPON_TERMS = `ALTER TABLE sales ADD COLUMN coupon ${WORD} NULL`;

/** One coupon per paid order of a sale with coupon terms. Not archived, because an order of any sale may use it. */
const COUPON_CODES = `CREATE TABLE IF NOT EXISTS coupon_codes (
  code CHAR(10) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  sale_id BIGINT UNSIGNED NOT NULL,
  user_id ${USER_ID} NOT NULL,
  currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  value_cents BIGINT UNSIGNED NULL,
  percent TINYINT UNSIGNED NULL,
  min_cents BIGINT UNSIGNED NOT NULL,
  state ENUM('free', 'reserved', 'redeemed') NOT NULL DEFAULT 'free',
  used_order BIGINT UNSIGNED NULL,
  used_key ${ID} NULL,
  discount_cents BIGINT UNSIGNED NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  expires_at DATETIME(3) NOT NULL,
  redeemed_at DATETIME(3) NULL,
  UNIQUE KEY issued_for (order_id),
  KEY buyer (user_id, order_id),
  KEY sale (sale_id, order_id),
  KEY state (state, order_id),
  KEY used_order (used_order)
) ${TABLE}`;

/** A new word at the end changes no row. */
const REVOKED_COUPONS = `ALTER TABLE coupon_codes
  MODIFY COLUMN state ENUM('free', 'reserved', 'redeemed', 'revoked') NOT NULL DEFAULT 'free'`;

async function couponCodes(changes: SchemaChanges): Promise<void> {
  await changes.alter('sales', COUPON_TERMS, { column: 'coupon' });
  await changes.create(COUPON_CODES);
}

/** The key `request` makes a repeated request the same refund. At most one refund of an order is due. */
const ORDER_REFUNDS = `CREATE TABLE IF NOT EXISTS order_refunds (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_id BIGINT UNSIGNED NOT NULL,
  payment_id ${ID} NOT NULL,
  \`key\` ${ID} NOT NULL,
  amount_cents BIGINT UNSIGNED NOT NULL,
  restock TINYINT UNSIGNED NOT NULL,
  reason ${TEXT} NOT NULL,
  actor ${NAME} NOT NULL,
  state ENUM('due', 'refunded', 'failed') NOT NULL DEFAULT 'due',
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  available_at DATETIME(3) NOT NULL ${NOW},
  leased_until DATETIME(3) NULL,
  last_error ${TEXT} NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY request (order_id, \`key\`),
  KEY due (state, available_at),
  KEY payment (payment_id)
) ${TABLE}`;

/** `event` keeps a repeated message from adding rows. */
const NOTIFICATIONS = `CREATE TABLE IF NOT EXISTS notifications (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  user_id ${USER_ID} NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  sale_id BIGINT UNSIGNED NOT NULL,
  event_id ${ID} NOT NULL,
  type ${WORD} NOT NULL,
  happened_at DATETIME(3) NOT NULL,
  read_at DATETIME(3) NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  UNIQUE KEY event (order_id, event_id),
  KEY buyer (user_id, id),
  KEY created (created_at)
) ${TABLE}`;

/** The secret is needed for signing, so it is stored in plain text. */
const WEBHOOK_ENDPOINTS = `CREATE TABLE IF NOT EXISTS webhook_endpoints (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  url VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  secret ${ID} NOT NULL,
  events ${TEXT} NOT NULL,
  state ENUM('active', 'paused', 'failed') NOT NULL DEFAULT 'active',
  state_since DATETIME(3) NOT NULL ${NOW},
  failures INT UNSIGNED NOT NULL DEFAULT 0,
  failing_since DATETIME(3) NULL,
  available_at DATETIME(3) NOT NULL ${NOW},
  last_error VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(3) NOT NULL ${NOW}
) ${TABLE}`;

const SECRET_BEFORE = `ALTER TABLE webhook_endpoints
  ADD COLUMN secret_before ${ID} NULL,
  ADD COLUMN secret_before_until DATETIME(3) NULL`;

/** The index `due` serves the keeper, `list` serves operators, and `aged` serves the removal of old rows. */
const WEBHOOK_DELIVERIES = `CREATE TABLE IF NOT EXISTS webhook_deliveries (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  endpoint_id BIGINT UNSIGNED NOT NULL,
  order_id BIGINT UNSIGNED NOT NULL,
  sequence BIGINT UNSIGNED NOT NULL,
  type ${WORD} NOT NULL,
  sale_id BIGINT UNSIGNED NOT NULL,
  happened_at DATETIME(3) NOT NULL,
  state ENUM('due', 'delivered', 'dropped') NOT NULL DEFAULT 'due',
  attempts INT UNSIGNED NOT NULL DEFAULT 0,
  available_at DATETIME(3) NOT NULL ${NOW},
  last_error VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(3) NOT NULL ${NOW},
  UNIQUE KEY event (endpoint_id, order_id, sequence),
  KEY due (endpoint_id, state, available_at),
  KEY list (endpoint_id, state),
  KEY aged (state, created_at)
) ${TABLE}`;

async function orderRefunds(changes: SchemaChanges): Promise<void> {
  for (const table of ['orders', 'orders_archive']) {
    await changes.alter(table, `ALTER TABLE ${table} ${MONEY_COLUMNS}`, { column: 'refunded_cents' });
  }
  await changes.create(ORDER_REFUNDS);
}

/** Tables whose rows did not name the sale. The column is NULL in rows of the previous release (decision 63). */
const OF_ORDERS = [
  'outbox',
  'order_metadata',
  'order_metadata_archive',
  'order_traces',
  'order_traces_archive',
  'payments',
  'payments_archive',
  'payment_attempts',
  'refunds',
  'order_refunds',
];

/** `place` names the transaction, so a finding is stored once even if the transaction is read twice. */
const WITNESS_FINDINGS = `CREATE TABLE IF NOT EXISTS witness_findings (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  place VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kind ${WORD} NOT NULL,
  subject ${USER_ID} NOT NULL,
  order_id BIGINT UNSIGNED NULL,
  sale_id BIGINT UNSIGNED NULL,
  detail ${TEXT} NOT NULL,
  committed_at DATETIME(3) NOT NULL,
  state ENUM('open', 'closed') NOT NULL DEFAULT 'open',
  created_at DATETIME(3) NOT NULL ${NOW},
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3),
  UNIQUE KEY found (place, kind, subject),
  KEY state (state, id),
  KEY order_id (order_id)
) ${TABLE}`;
const WITNESS_POSITION = `CREATE TABLE IF NOT EXISTS witness_position (
  id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
  position ${LONG_TEXT} NOT NULL,
  version BIGINT UNSIGNED NOT NULL,
  updated_at DATETIME(3) NOT NULL ${NOW} ON UPDATE CURRENT_TIMESTAMP(3)
) ${TABLE}`;
const WITNESS_READ_TO = `ALTER TABLE witness_position ADD COLUMN read_to DATETIME(3) NOT NULL ${NOW}`;
async function notices(changes: SchemaChanges): Promise<void> {
  await changes.create(NOTIFICATIONS, WEBHOOK_ENDPOINTS, WEBHOOK_DELIVERIES);
}

async function saleColumns(changes: SchemaChanges): Promise<void> {
  for (const table of OF_ORDERS) {
    await changes.alter(table, `ALTER TABLE ${table} ADD COLUMN sale_id BIGINT UNSIGNED NULL`, { column: 'sale_id' });
  }
}

async function listIndexes(changes: SchemaChanges): Promise<void> {
  await changes.alter('audit_log', AUDIT_INDEXES, { index: 'created' });
  await changes.alter('dead_letters', DEAD_LETTER_INDEXES, { index: 'sale' });
  await changes.alter('refunds', REFUND_INDEXES, { index: 'created' });
  await changes.alter('sales', SALE_INDEXES, { index: 'state_closes' });
  await changes.alter('reconcile_runs', RUN_INDEXES, { index: 'started' });
  await changes.alter('outbox', OUTBOX_CREATED, { index: 'created' });
}

async function paymentAttempts(changes: SchemaChanges): Promise<void> {
  await changes.create(PAYMENT_ATTEMPTS);
  await changes.alter('refunds', REFUND_LEASE_COLUMN, { column: 'leased_until' });
}

async function firstTables(changes: SchemaChanges): Promise<void> {
  await changes.create(SALES, ORDERS, OUTBOX, DEAD_LETTERS, WORKER_SLOTS, AUDIT_LOG);
  const slots = Array.from({ length: SLOTS }, (_, slot) => `(${slot})`).join(', ');
  await changes.write(
    'worker_slots',
    `INSERT INTO worker_slots (slot) VALUES ${slots} ON DUPLICATE KEY UPDATE slot = worker_slots.slot`,
  );
}

async function saleSchedule(changes: SchemaChanges): Promise<void> {
  await changes.alter('sales', SCHEDULE_COLUMNS, { column: 'due_at' });
  await changes.create(SALE_CALENDAR);
  await changes.write('sale_calendar', 'INSERT INTO sale_calendar (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 1');
}

async function saleEdits(changes: SchemaChanges): Promise<void> {
  await changes.alter('sales', CURRENCY_COLUMN, { column: 'currency' });
  await changes.create(SALE_EDITS);
}

async function orderArchive(changes: SchemaChanges): Promise<void> {
  await changes.create(...ARCHIVES.map((table) => `CREATE TABLE IF NOT EXISTS ${table}_archive LIKE ${table}`));
  await changes.alter('orders_archive', ORDERS_ARCHIVE_INDEXES, { index: 'sale' });
  await changes.alter('sales', ARCHIVE_STATES);
}

async function longUserIds(changes: SchemaChanges): Promise<void> {
  for (const table of WITH_USER_ID) {
    await changes.alter(table, `ALTER TABLE ${table} MODIFY COLUMN user_id ${USER_ID} NOT NULL, ${ONLINE}`);
  }
  await changes.alter(
    'compensation_jobs',
    `ALTER TABLE compensation_jobs MODIFY COLUMN user_id ${USER_ID} NULL, MODIFY COLUMN subject ${SUBJECT} NOT NULL, ${ONLINE}`,
  );
}

async function archiveAfter(changes: SchemaChanges): Promise<void> {
  await changes.create('CREATE TABLE IF NOT EXISTS order_metadata_archive LIKE order_metadata');
  await changes.alter('sales', ARCHIVE_AFTER, { column: 'archive_after' });
}

async function parkedBatches(changes: SchemaChanges): Promise<void> {
  await changes.alter('dead_letters', PARKED_BATCH, { column: 'parked_batch' });
  await changes.write('dead_letters', MARK_PARKED_BATCHES);
}

async function orderRanges(changes: SchemaChanges): Promise<void> {
  await changes.create(ORDER_RANGES);
  await changes.fill('orders', FILL_RANGES, fillRanges);
}

/** Ranges may overlap, so concurrent workers and killed migrators do no harm. READ COMMITTED locks nothing. */
async function fillRanges(knex: Knex): Promise<void> {
  await knex.raw('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED');
  const lastOf = 'SELECT CAST(id AS CHAR) AS id FROM orders WHERE id > CAST(? AS UNSIGNED) ORDER BY orders.id LIMIT 1';
  for (let after = '0'; ;) {
    const [[end]] = (await knex.raw(`${lastOf} OFFSET ${WINDOW_ROWS - 1}`, [after])) as [{ readonly id: string }[]];
    await knex.raw(FILL_RANGES, [after, end?.id ?? ID_MAX]);
    if (end === undefined) return;
    after = end.id;
  }
}

/** Released steps never change and only add, because the previous release must run on the result (docs/upgrades.md). */
export const MIGRATIONS: readonly NamedMigration[] = [
  { name: '0001-first-tables', up: firstTables },
  { name: '0002-payments', up: (changes) => changes.create(PAYMENTS, REFUNDS) },
  { name: '0003-coupons', up: (changes) => changes.create(COUPONS) },
  {
    name: '0004-dead-letter-replay',
    up: (changes) => changes.alter('dead_letters', REPLAY_COLUMNS, { column: 'note' }),
  },
  { name: '0005-reconcile', up: (changes) => changes.create(COMPENSATION_JOBS, RECONCILE_RUNS, RECONCILE_LEASES) },
  { name: '0006-refund-attempts', up: (changes) => changes.alter('refunds', ATTEMPT_COLUMNS, { column: 'attempts' }) },
  { name: '0007-entry-rules', up: (changes) => changes.create(ENTRY_RULES) },
  { name: '0008-order-ranges', up: orderRanges },
  { name: '0009-dead-letter-batch', up: parkedBatches },
  { name: '0010-outbox-due', up: (changes) => changes.alter('outbox', OUTBOX_DUE_AT, { index: 'due_at' }) },
  { name: '0011-payment-attempts', up: paymentAttempts },
  { name: '0012-retired-sales', up: (changes) => changes.alter('sales', RETIREMENT_COLUMNS, { column: 'retired_at' }) },
  { name: '0013-sale-schedule', up: saleSchedule },
  { name: '0014-sale-edits', up: saleEdits },
  { name: '0015-list-indexes', up: listIndexes },
  { name: '0016-order-metadata', up: (changes) => changes.create(ORDER_METADATA) },
  { name: '0017-order-archive', up: orderArchive },
  { name: '0018-long-user-ids', up: longUserIds },
  { name: '0019-revocations', up: (changes) => changes.create(REVOCATIONS) },
  { name: '0020-archive-after', up: archiveAfter },
  { name: '0021-job-leases', up: (changes) => changes.create(JOB_LEASES) },
  { name: '0022-order-traces', up: (changes) => changes.create(ORDER_TRACES, ORDER_TRACES_ARCHIVE) },
  { name: '0023-payment-cases', up: (changes) => changes.create(PAYMENT_CASES) },
  { name: '0024-smallest-units', up: (changes) => changes.fill('orders', CONVERT, convertAmounts) },
  { name: '0025-payment-times', up: paymentTimes },
  { name: '0026-order-refunds', up: orderRefunds },
  {
    name: '0027-payment-window',
    up: (changes) => changes.alter('sales', PAYMENT_WINDOW, { column: 'payment_window_ms' }),
  },
  { name: '0028-sale-columns', up: saleColumns },
  { name: '0029-coupon-codes', up: couponCodes },
  { name: '0030-notifications-and-webhooks', up: notices },
  { name: '0031-witness', up: (changes) => changes.create(WITNESS_FINDINGS, WITNESS_POSITION) },
  {
    name: '0032-rules-canary',
    up: (changes) => changes.alter('entry_rules', RULES_CANARY, { column: 'canary_json' }),
  },
  { name: '0033-revoked-coupons', up: (changes) => changes.alter('coupon_codes', REVOKED_COUPONS) },
  {
    name: '0034-webhook-secret-before',
    up: (changes) => changes.alter('webhook_endpoints', SECRET_BEFORE, { column: 'secret_before' }),
  },
  {
    name: '0035-witness-read-to',
    up: (changes) => changes.alter('witness_position', WITNESS_READ_TO, { column: 'read_to' }),
  },
];

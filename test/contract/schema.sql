CREATE TABLE audit_log (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  action varchar(128) COLLATE utf8mb4_bin NOT NULL
  subject varchar(128) COLLATE utf8mb4_bin NOT NULL
  before_json mediumtext COLLATE utf8mb4_bin
  after_json mediumtext COLLATE utf8mb4_bin
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  KEY action (action,id)
  KEY actor (actor,id)
  KEY created (created_at)
  PRIMARY KEY (id)
  KEY subject (subject,id)
);

CREATE TABLE compensation_jobs (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  kind varchar(32) COLLATE ascii_bin NOT NULL
  subject varchar(255) COLLATE ascii_bin NOT NULL
  sale_id bigint unsigned NOT NULL
  batch_id varchar(64) COLLATE ascii_bin
  user_id varchar(128) COLLATE ascii_bin
  request_id varchar(64) COLLATE ascii_bin
  detail varchar(1000) COLLATE utf8mb4_bin NOT NULL
  state enum('pending','compensated','failed_final') COLLATE utf8mb4_bin NOT NULL DEFAULT pending
  attempts int unsigned NOT NULL DEFAULT 0
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  last_error varchar(1000) COLLATE utf8mb4_bin
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  KEY batch (batch_id)
  KEY due (state,available_at)
  PRIMARY KEY (id)
  KEY sale (sale_id,state)
  UNIQUE KEY subject (subject,kind)
);

CREATE TABLE coupons (
  order_id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  KEY buyer (user_id)
  PRIMARY KEY (order_id)
);

CREATE TABLE coupons_archive (
  order_id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  KEY buyer (user_id)
  PRIMARY KEY (order_id)
);

CREATE TABLE coupon_codes (
  code char(10) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  currency char(3) COLLATE ascii_bin NOT NULL
  value_cents bigint unsigned
  percent tinyint unsigned
  min_cents bigint unsigned NOT NULL
  state enum('free','reserved','redeemed','revoked') COLLATE utf8mb4_bin NOT NULL DEFAULT free
  used_order bigint unsigned
  used_key varchar(64) COLLATE ascii_bin
  discount_cents bigint unsigned
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  expires_at datetime(3) NOT NULL
  redeemed_at datetime(3)
  KEY buyer (user_id,order_id)
  UNIQUE KEY issued_for (order_id)
  PRIMARY KEY (code)
  KEY sale (sale_id,order_id)
  KEY state (state,order_id)
  KEY used_order (used_order)
);

CREATE TABLE dead_letters (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  message_id varchar(128) COLLATE utf8mb4_bin NOT NULL
  consumer_group varchar(128) COLLATE utf8mb4_bin NOT NULL
  origin_topic varchar(128) COLLATE utf8mb4_bin NOT NULL
  sale_id varchar(128) COLLATE utf8mb4_bin
  batch_id varchar(128) COLLATE utf8mb4_bin
  body mediumtext COLLATE utf8mb4_bin NOT NULL
  reason varchar(32) COLLATE ascii_bin NOT NULL
  detail varchar(1000) COLLATE utf8mb4_bin NOT NULL
  state enum('parked','replayed','discarded') COLLATE utf8mb4_bin NOT NULL DEFAULT parked
  attempts int unsigned NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  replays int unsigned NOT NULL DEFAULT 0
  replay_started_at datetime(3)
  note varchar(1000) COLLATE utf8mb4_bin
  parked_batch varchar(64) COLLATE ascii_bin
  KEY batch (batch_id)
  KEY created (created_at)
  UNIQUE KEY message (message_id,consumer_group)
  UNIQUE KEY parked_batch (parked_batch)
  PRIMARY KEY (id)
  KEY sale (sale_id,id)
  KEY state (state,created_at)
);

CREATE TABLE entry_rules (
  version int unsigned NOT NULL
  rules_json mediumtext COLLATE utf8mb4_bin NOT NULL
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  canary_json mediumtext COLLATE utf8mb4_bin
  PRIMARY KEY (version)
);

CREATE TABLE job_leases (
  job varchar(128) COLLATE utf8mb4_bin NOT NULL
  owner varchar(128) COLLATE utf8mb4_bin NOT NULL
  leased_until datetime(3) NOT NULL
  PRIMARY KEY (job)
);

CREATE TABLE notifications (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  event_id varchar(64) COLLATE ascii_bin NOT NULL
  type varchar(32) COLLATE ascii_bin NOT NULL
  happened_at datetime(3) NOT NULL
  read_at datetime(3)
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  KEY buyer (user_id,id)
  KEY created (created_at)
  UNIQUE KEY event (order_id,event_id)
  PRIMARY KEY (id)
);

CREATE TABLE orders (
  id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  request_id varchar(64) COLLATE ascii_bin NOT NULL
  batch_id varchar(64) COLLATE ascii_bin NOT NULL
  quantity smallint unsigned NOT NULL
  amount_cents bigint unsigned NOT NULL
  state enum('pending_payment','paid','cancelled','expired','failed') COLLATE utf8mb4_bin NOT NULL DEFAULT pending_payment
  reason varchar(32) COLLATE ascii_bin
  one_per_buyer tinyint unsigned NOT NULL
  active_key bigint unsigned AS (ifone_per_buyer=1andstatein'pending_payment','paid',sale_id,null) VIRTUAL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  expires_at datetime(3)
  paid_at datetime(3)
  after_paid enum('refunding','refunded','returned','disputed') COLLATE utf8mb4_bin
  refunded_cents bigint unsigned
  UNIQUE KEY active (active_key,user_id)
  KEY batch (batch_id)
  KEY expiry (state,expires_at)
  PRIMARY KEY (id)
  UNIQUE KEY request (user_id,sale_id,request_id)
);

CREATE TABLE orders_archive (
  id bigint unsigned NOT NULL
  sale_id bigint unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin NOT NULL
  request_id varchar(64) COLLATE ascii_bin NOT NULL
  batch_id varchar(64) COLLATE ascii_bin NOT NULL
  quantity smallint unsigned NOT NULL
  amount_cents bigint unsigned NOT NULL
  state enum('pending_payment','paid','cancelled','expired','failed') COLLATE utf8mb4_bin NOT NULL DEFAULT pending_payment
  reason varchar(32) COLLATE ascii_bin
  one_per_buyer tinyint unsigned NOT NULL
  active_key bigint unsigned AS (ifone_per_buyer=1andstatein'pending_payment','paid',sale_id,null) VIRTUAL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  expires_at datetime(3)
  paid_at datetime(3)
  after_paid enum('refunding','refunded','returned','disputed') COLLATE utf8mb4_bin
  refunded_cents bigint unsigned
  KEY batch (batch_id)
  PRIMARY KEY (id)
  UNIQUE KEY request (user_id,sale_id,request_id)
  KEY sale (sale_id,id)
);

CREATE TABLE order_metadata (
  order_id bigint unsigned NOT NULL
  metadata varchar(512) COLLATE utf8mb4_bin NOT NULL
  sale_id bigint unsigned
  PRIMARY KEY (order_id)
);

CREATE TABLE order_metadata_archive (
  order_id bigint unsigned NOT NULL
  metadata varchar(512) COLLATE utf8mb4_bin NOT NULL
  sale_id bigint unsigned
  PRIMARY KEY (order_id)
);

CREATE TABLE order_ranges (
  sale_id bigint unsigned NOT NULL
  first_id bigint unsigned NOT NULL
  last_id bigint unsigned NOT NULL
  orders int unsigned NOT NULL
  PRIMARY KEY (sale_id,first_id)
);

CREATE TABLE order_refunds (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  order_id bigint unsigned NOT NULL
  payment_id varchar(64) COLLATE ascii_bin NOT NULL
  key varchar(64) COLLATE ascii_bin NOT NULL
  amount_cents bigint unsigned NOT NULL
  restock tinyint unsigned NOT NULL
  reason varchar(1000) COLLATE utf8mb4_bin NOT NULL
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  state enum('due','refunded','failed') COLLATE utf8mb4_bin NOT NULL DEFAULT due
  attempts int unsigned NOT NULL DEFAULT 0
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  leased_until datetime(3)
  last_error varchar(1000) COLLATE utf8mb4_bin
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  sale_id bigint unsigned
  KEY due (state,available_at)
  KEY payment (payment_id)
  PRIMARY KEY (id)
  UNIQUE KEY request (order_id,key)
);

CREATE TABLE order_traces (
  order_id bigint unsigned NOT NULL
  trace_id binary(16) NOT NULL
  sale_id bigint unsigned
  PRIMARY KEY (order_id)
  KEY trace (trace_id)
);

CREATE TABLE order_traces_archive (
  order_id bigint unsigned NOT NULL
  trace_id binary(16) NOT NULL
  sale_id bigint unsigned
  PRIMARY KEY (order_id)
  KEY trace (trace_id)
);

CREATE TABLE outbox (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  kind varchar(32) COLLATE ascii_bin NOT NULL
  key varchar(64) COLLATE ascii_bin NOT NULL
  payload mediumtext COLLATE utf8mb4_bin NOT NULL
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  attempts int unsigned NOT NULL DEFAULT 0
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  done_at datetime(3)
  sale_id bigint unsigned
  KEY created (created_at)
  KEY due_at (kind,done_at,available_at)
  PRIMARY KEY (id)
);

CREATE TABLE payments (
  payment_id varchar(64) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned NOT NULL
  amount_cents bigint unsigned NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  sale_id bigint unsigned
  KEY created (created_at)
  KEY order_id (order_id)
  PRIMARY KEY (payment_id)
);

CREATE TABLE payments_archive (
  payment_id varchar(64) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned NOT NULL
  amount_cents bigint unsigned NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  sale_id bigint unsigned
  KEY created (created_at)
  KEY order_id (order_id)
  PRIMARY KEY (payment_id)
);

CREATE TABLE payment_attempts (
  order_id bigint unsigned NOT NULL
  key varchar(64) COLLATE ascii_bin NOT NULL
  amount_cents bigint unsigned NOT NULL
  state enum('open','charged','declined','not_charged') COLLATE utf8mb4_bin NOT NULL DEFAULT open
  version int unsigned NOT NULL DEFAULT 0
  opened_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  last_error varchar(1000) COLLATE utf8mb4_bin
  sale_id bigint unsigned
  KEY due (state,available_at)
  PRIMARY KEY (order_id,key)
);

CREATE TABLE payment_cases (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  kind varchar(32) COLLATE ascii_bin NOT NULL
  subject varchar(128) COLLATE ascii_bin NOT NULL
  payment_id varchar(64) COLLATE ascii_bin
  order_id bigint unsigned
  amount_cents bigint unsigned
  currency char(3) COLLATE ascii_bin
  detail varchar(1000) COLLATE utf8mb4_bin NOT NULL
  state enum('open','closed') COLLATE utf8mb4_bin NOT NULL DEFAULT open
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  PRIMARY KEY (id)
  KEY state (state)
  UNIQUE KEY subject (subject,kind)
);

CREATE TABLE reconcile_leases (
  sale_id bigint unsigned NOT NULL
  owner varchar(128) COLLATE utf8mb4_bin NOT NULL
  leased_until datetime(3) NOT NULL
  PRIMARY KEY (sale_id)
);

CREATE TABLE reconcile_runs (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  sale_id bigint unsigned
  applied tinyint unsigned NOT NULL
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  started_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  finished_at datetime(3)
  outcome varchar(32) COLLATE ascii_bin
  figures_json mediumtext COLLATE utf8mb4_bin
  findings_json mediumtext COLLATE utf8mb4_bin
  PRIMARY KEY (id)
  KEY sale (sale_id,id)
  KEY started (started_at)
);

CREATE TABLE refunds (
  payment_id varchar(64) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned NOT NULL
  amount_cents bigint unsigned NOT NULL
  reason varchar(32) COLLATE ascii_bin NOT NULL
  state enum('due','refunded') COLLATE utf8mb4_bin NOT NULL DEFAULT due
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  attempts int unsigned NOT NULL DEFAULT 0
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  last_error varchar(1000) COLLATE utf8mb4_bin
  leased_until datetime(3)
  sale_id bigint unsigned
  KEY created (created_at,payment_id)
  KEY due (state,available_at)
  KEY order_id (order_id)
  PRIMARY KEY (payment_id)
  KEY state (state,created_at)
);

CREATE TABLE revocations (
  number int unsigned NOT NULL
  user_id varchar(128) COLLATE ascii_bin
  issued_before datetime(3)
  token_id varchar(128) COLLATE ascii_bin
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  PRIMARY KEY (number)
);

CREATE TABLE sales (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  sku varchar(128) COLLATE utf8mb4_bin NOT NULL
  title varchar(255) COLLATE utf8mb4_bin NOT NULL
  price_cents int unsigned NOT NULL
  stock int unsigned NOT NULL
  sold int unsigned NOT NULL DEFAULT 0
  limit_per_buyer smallint unsigned NOT NULL
  buckets smallint unsigned NOT NULL
  opens_at datetime(3) NOT NULL
  closes_at datetime(3) NOT NULL
  state enum('draft','warm','open','paused','closed') COLLATE utf8mb4_bin NOT NULL DEFAULT draft
  epoch int unsigned NOT NULL DEFAULT 1
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  closed_at datetime(3)
  retired_at datetime(3)
  retirement enum('none','begun','done','archiving','archived') COLLATE utf8mb4_bin NOT NULL DEFAULT none
  warms_at datetime(3)
  compared_at datetime(3)
  compare_after datetime(3)
  due_at datetime(3) AS (casewhenwarms_atisnullorcompared_atisnotnullorretirement<>'none'thennullwhenstatein'draft','warm'thenwarms_atwhenstate='closed'thencoalescecompare_after,closes_atelsecloses_atend) VIRTUAL
  currency char(3) COLLATE ascii_bin NOT NULL DEFAULT eur
  archive_after datetime(3)
  payment_window_ms int unsigned
  coupon varchar(32) COLLATE ascii_bin
  KEY archive (retirement,archive_after,retired_at)
  KEY due (due_at)
  KEY opens (opens_at)
  PRIMARY KEY (id)
  KEY retirement (state,retirement,closes_at)
  KEY sku (sku)
  KEY state_closes (state,closes_at)
);

CREATE TABLE sale_calendar (
  id tinyint unsigned NOT NULL
  PRIMARY KEY (id)
);

CREATE TABLE sale_edits (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  sale_id bigint unsigned NOT NULL
  units int NOT NULL
  epoch int unsigned NOT NULL
  state enum('begun','done','refused') COLLATE utf8mb4_bin NOT NULL DEFAULT begun
  actor varchar(128) COLLATE utf8mb4_bin NOT NULL
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  PRIMARY KEY (id)
  KEY sale (sale_id,state)
  KEY state (state,id)
);

CREATE TABLE webhook_deliveries (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  endpoint_id bigint unsigned NOT NULL
  order_id bigint unsigned NOT NULL
  sequence bigint unsigned NOT NULL
  type varchar(32) COLLATE ascii_bin NOT NULL
  sale_id bigint unsigned NOT NULL
  happened_at datetime(3) NOT NULL
  state enum('due','delivered','dropped') COLLATE utf8mb4_bin NOT NULL DEFAULT due
  attempts int unsigned NOT NULL DEFAULT 0
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  last_error varchar(200) COLLATE utf8mb4_bin
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  KEY aged (state,created_at)
  KEY due (endpoint_id,state,available_at)
  UNIQUE KEY event (endpoint_id,order_id,sequence)
  KEY list (endpoint_id,state)
  PRIMARY KEY (id)
);

CREATE TABLE webhook_endpoints (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  url varchar(500) COLLATE utf8mb4_bin NOT NULL
  secret varchar(64) COLLATE ascii_bin NOT NULL
  events varchar(1000) COLLATE utf8mb4_bin NOT NULL
  state enum('active','paused','failed') COLLATE utf8mb4_bin NOT NULL DEFAULT active
  state_since datetime(3) NOT NULL DEFAULT current_timestamp(3)
  failures int unsigned NOT NULL DEFAULT 0
  failing_since datetime(3)
  available_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  last_error varchar(200) COLLATE utf8mb4_bin
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  secret_before varchar(64) COLLATE ascii_bin
  secret_before_until datetime(3)
  PRIMARY KEY (id)
);

CREATE TABLE witness_findings (
  id bigint unsigned NOT NULL AUTO_INCREMENT
  place varchar(128) COLLATE ascii_bin NOT NULL
  kind varchar(32) COLLATE ascii_bin NOT NULL
  subject varchar(128) COLLATE ascii_bin NOT NULL
  order_id bigint unsigned
  sale_id bigint unsigned
  detail varchar(1000) COLLATE utf8mb4_bin NOT NULL
  committed_at datetime(3) NOT NULL
  state enum('open','closed') COLLATE utf8mb4_bin NOT NULL DEFAULT open
  created_at datetime(3) NOT NULL DEFAULT current_timestamp(3)
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  UNIQUE KEY found (place,kind,subject)
  KEY order_id (order_id)
  PRIMARY KEY (id)
  KEY state (state,id)
);

CREATE TABLE witness_position (
  id tinyint unsigned NOT NULL
  position mediumtext COLLATE utf8mb4_bin NOT NULL
  version bigint unsigned NOT NULL
  updated_at datetime(3) NOT NULL DEFAULT current_timestamp(3) ON UPDATE current_timestamp(3)
  read_to datetime(3) NOT NULL DEFAULT current_timestamp(3)
  PRIMARY KEY (id)
);

CREATE TABLE worker_slots (
  slot tinyint unsigned NOT NULL
  owner varchar(64) COLLATE ascii_bin
  leased_until datetime(3) NOT NULL DEFAULT 2000-01-0100:00:00.000
  KEY leased (leased_until)
  UNIQUE KEY owner (owner)
  PRIMARY KEY (slot)
);

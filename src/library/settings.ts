// Made from src/core/config/schema.ts: npm run generate

/** Values for the variables of the environment, by their names. One that is left out is read from the environment. */
export interface Settings {
  /** Networks of our own proxies. Only what they have added to X-Forwarded-For is read; not set: nothing of it. (networks such as 10.0.0.0/8, separated by commas; not set by default) */
  readonly HTTP_TRUSTED_PROXIES?: string;
  /** Requests of one address to one api in ten seconds, of any kind; one more gets `rate_limited`. Limits that all apis share are in the rules. (0 to 1000000 requests; 0: any number; default 3000) */
  readonly HTTP_REQUESTS_PER_ADDRESS_MAX?: number;
  /** Networks whose addresses are not counted one by one: a proxy in them that is not named in HTTP_TRUSTED_PROXIES would be one client. (networks such as 10.0.0.0/8, separated by commas; default 127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,::1,fc00::/7,fe80::/10) */
  readonly HTTP_UNLIMITED_NETWORKS?: string;
  /** Requests under way at SIGTERM are answered within this time. (0 to 15000 ms; default 8000) */
  readonly HTTP_DRAIN_MS?: number;
  /** Which answers get a line of JSON with route, code, reason, request, user, sale and time: none, refusals (4xx and 5xx), one of ACCESS_LOG_SAMPLE_EVERY, or all. (default off) */
  readonly ACCESS_LOG?: 'off' | 'refusals' | 'sampled' | 'all';
  /** The file that lines are appended to. Not set: stdout. (path; not set by default) */
  readonly ACCESS_LOG_FILE?: string;
  /** With ACCESS_LOG=sampled one answer of so many gets a line. (1 to 1000000 answers; default 100) */
  readonly ACCESS_LOG_SAMPLE_EVERY?: number;
  /** Lines of one second; how many more there were is written instead. (1 to 100000 lines; default 2000) */
  readonly ACCESS_LOG_PER_SECOND_MAX?: number;
  /** Which trace ids are stored with purchases, so that `seckill trace` finds them by it: all that callers send, those of traces that are recorded, or none. (default all) */
  readonly TRACE_IDS_STORED?: 'all' | 'sampled' | 'none';
  /** What JWT_SECRET is the key of: the only algorithm of tokens that are checked with it. (default HS256) */
  readonly JWT_ALGORITHM?: 'HS256' | 'RS256' | 'ES256' | 'EdDSA';
  /** HS256: a shared secret, for tokens whose `kid` is none of JWT_KEYS. Otherwise a public key, PEM. Tokens need JWT_SECRET, JWT_KEYS or JWT_ISSUERS. (32 characters or more; not set by default) */
  readonly JWT_SECRET?: string;
  /** A file that holds JWT_SECRET. */
  readonly JWT_SECRET_FILE?: string;
  /** HS256 keys by the `kid` of the token, so that keys can be changed while tokens of both are good. The first one signs the tokens that the command line makes. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly JWT_KEYS?: string;
  /** A file that holds JWT_KEYS. */
  readonly JWT_KEYS_FILE?: string;
  /** What tokens of JWT_SECRET and JWT_KEYS must have as `iss`. Not set: anything. (text; not set by default) */
  readonly JWT_ISSUER?: string;
  /** What tokens of JWT_SECRET and JWT_KEYS must have in `aud`. Not set: anything. (text; not set by default) */
  readonly JWT_AUDIENCE?: string;
  /** Identity providers whose tokens are accepted, as JSON; [Identity](identity.md) has the form. (JSON list of issuers; not set by default) */
  readonly JWT_ISSUERS?: string;
  /** The keys of each issuer are read this often, and at once when a token names an unknown one. (1000 to 3600000 ms; default 300000) */
  readonly JWKS_REFRESH_MS?: number;
  /** A token that is good for longer, from `iat` to `exp`, is refused: a leaked one ends by then. (60000 to 31536000000 ms; default 86400000) */
  readonly JWT_LIFE_MAX_MS?: number;
  /** How far the clock of an issuer may be from ours. (0 to 300000 ms; default 5000) */
  readonly JWT_CLOCK_TOLERANCE_MS?: number;
  /** Verified tokens kept in memory. (0 to 1000000 tokens; default 20000) */
  readonly JWT_CACHE_MAX?: number;
  /** Keys that may sign requests; the rules name those that are accepted now. Not set: rules that need one are refused. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly ADMISSION_SIGN_KEYS?: string;
  /** A file that holds ADMISSION_SIGN_KEYS. */
  readonly ADMISSION_SIGN_KEYS_FILE?: string;
  /** Keys that seal purchase tokens, tickets and passes, the same for every api: the first one seals, all are accepted. Not set: rules that need one are refused. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly ADMISSION_SEAL_KEYS?: string;
  /** A file that holds ADMISSION_SEAL_KEYS. */
  readonly ADMISSION_SEAL_KEYS_FILE?: string;
  /** A sale snapshot in memory is used this long. (10 to 60000 ms; default 1000) */
  readonly GATE_CARD_MEMORY_MS?: number;
  /** A sale snapshot in Redis is used this long. (100 to 600000 ms; default 5000) */
  readonly GATE_CARD_CACHE_MS?: number;
  /** From so many attempts to buy a second on, over ten seconds and all apis together, a sale is hot: a metric of the keeper names it. (0 to 1000000 purchases a second; 0: off; default 2000) */
  readonly HOT_SALE_PER_SECOND?: number;
  /** A sold-out flag is used this long; released units are offered again within it. (10 to 1000 ms; default 500) */
  readonly GATE_SOLD_OUT_LIFE_MS?: number;
  /** Buyers with accepted purchases kept in memory, all sold-out sales together, so that they are not refused from memory when they ask again. (0 to 5000000 buyers; default 500000) */
  readonly GATE_SOLD_OUT_KEYS_MAX?: number;
  /** Purchases in one half message. 1 switches group commit off. (1 to 512 purchases; default 192) */
  readonly BATCH_SIZE_MAX?: number;
  /** Batches of one sale and bucket under way at once. (1 to 128 batches; default 3) */
  readonly BATCH_IN_FLIGHT_MAX?: number;
  /** Of batches below a quarter of BATCH_SIZE_MAX, one leaves in this time, per process, sale and bucket; 0: any number. (0 to 1000 ms; default 25) */
  readonly BATCH_GATHER_MS?: number;
  /** Purchases waiting in one process; one more gets `overloaded`. (1 to 1000000 purchases; default 8192) */
  readonly BATCH_QUEUE_MAX?: number;
  /** A purchase that waited longer gets `overloaded`; at least twice BATCH_GATHER_MS. (10 to 30000 ms; default 2000) */
  readonly BATCH_WAIT_MAX_MS?: number;
  /** Batches one purchase may go through before it gets `overloaded`. (1 to 20 batches; default 5) */
  readonly BATCH_ROUNDS_MAX?: number;
  /** The Redis that holds the stock: one server, the master that sentinels name, or a cluster (some of its servers are enough). With rediss everything goes by TLS, sentinels too. User and password are those of the servers. (redis://… or rediss://… or redis[s]+sentinel://[user:password@]host:port,host:port/master-name[/db] or redis[s]+cluster://[user:password@]host:port,host:port; it must be set, here or in the environment) */
  readonly REDIS_URL?: string;
  /** A file that holds REDIS_URL. */
  readonly REDIS_URL_FILE?: string;
  /** Password of the servers, where it does not stand in REDIS_URL. (text; not set by default) */
  readonly REDIS_PASSWORD?: string;
  /** A file that holds REDIS_PASSWORD. */
  readonly REDIS_PASSWORD_FILE?: string;
  /** As whom sentinels are asked, where they have users. (text; not set by default) */
  readonly REDIS_SENTINEL_USER?: string;
  /** Password of the sentinels. Not set: they are asked without. (text; not set by default) */
  readonly REDIS_SENTINEL_PASSWORD?: string;
  /** A file that holds REDIS_SENTINEL_PASSWORD. */
  readonly REDIS_SENTINEL_PASSWORD_FILE?: string;
  /** Certificates of the authorities that sign those of Redis and its sentinels. Not set: those that Node trusts, and the ones of NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly REDIS_TLS_CA?: string;
  /** A file that holds REDIS_TLS_CA. */
  readonly REDIS_TLS_CA_FILE?: string;
  /** Our own certificate, and those between it and its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly REDIS_TLS_CERT?: string;
  /** A file that holds REDIS_TLS_CERT. */
  readonly REDIS_TLS_CERT_FILE?: string;
  /** The private key of REDIS_TLS_CERT. (a private key in PEM; not set by default) */
  readonly REDIS_TLS_KEY?: string;
  /** A file that holds REDIS_TLS_KEY. */
  readonly REDIS_TLS_KEY_FILE?: string;
  /** The name that the certificates of Redis and its sentinels must have, where it is not the host in REDIS_URL. (host name or IP address; not set by default) */
  readonly REDIS_TLS_SERVER_NAME?: string;
  /** How long a reply may take; after it the outcome of the command is unknown. (50 to 30000 ms; default 1500) */
  readonly REDIS_REPLY_TIMEOUT_MS?: number;
  /** How long a connect may take. (50 to 30000 ms; default 3000) */
  readonly REDIS_CONNECT_TIMEOUT_MS?: number;
  /** How long Redis remembers the end of a batch: that it was recorded, or took nothing. Longer than the broker keeps a half message (72 h). (1000 to 2592000000 ms; default 345600000) */
  readonly MARKER_LIFE_MS?: number;
  /** Replicas that must have stored a purchase before its buyer gets 202; 0: none. See docs/durability.md. (0 to 8 replicas; default 0) */
  readonly REDIS_WAIT_REPLICAS?: number;
  /** How long the replicas may take; after it the buyer gets outcome_unknown, and the order comes all the same. (10 to 10000 ms; default 500) */
  readonly REDIS_WAIT_REPLICAS_MS?: number;
  /** gRPC endpoint of the RocketMQ proxy. (host:port; it must be set, here or in the environment) */
  readonly ROCKETMQ_ENDPOINT?: string;
  /** Where calls go: to the address that the broker gives, or all to ROCKETMQ_ENDPOINT, for one broker behind a port mapping. (default handed_out) */
  readonly ROCKETMQ_ROUTE?: 'handed_out' | 'endpoint';
  /** How long half message, commit and rollback may take. (1000 to 10000 ms; default 3000) */
  readonly ROCKETMQ_REQUEST_TIMEOUT_MS?: number;
  /** How long a receive waits for a message; a program that stops waits as long. A proxy with default settings waits at least 5000. (1000 to 20000 ms; default 5000) */
  readonly ROCKETMQ_RECEIVE_WAIT_MS?: number;
  /** How long one try to start a client may take; a hung start is tried again. (1000 to 120000 ms; default 20000) */
  readonly ROCKETMQ_START_TIMEOUT_MS?: number;
  /** Check-backs answered at once; the client starts all of them together. (1 to 1000 checks; default 32) */
  readonly ROCKETMQ_CHECKS_IN_PARALLEL?: number;
  /** Name of the user as whom the programs connect to RocketMQ. Without it they give none, which a broker with access control refuses. (text; not set by default) */
  readonly ROCKETMQ_ACCESS_KEY?: string;
  /** Secret of ROCKETMQ_ACCESS_KEY: it signs requests and is never sent. (text; not set by default) */
  readonly ROCKETMQ_ACCESS_SECRET?: string;
  /** A file that holds ROCKETMQ_ACCESS_SECRET. */
  readonly ROCKETMQ_ACCESS_SECRET_FILE?: string;
  /** Sent with each request where key and secret are lent for some time, as some clouds do. (text; not set by default) */
  readonly ROCKETMQ_SESSION_TOKEN?: string;
  /** A file that holds ROCKETMQ_SESSION_TOKEN. */
  readonly ROCKETMQ_SESSION_TOKEN_FILE?: string;
  /** What goes to RocketMQ by TLS: nothing; what goes to ROCKETMQ_ENDPOINT and where that leads (`grpc`); or the admin protocol of name servers and brokers as well (`on`). (default off) */
  readonly ROCKETMQ_TLS?: 'off' | 'grpc' | 'on';
  /** Certificates of the authorities that sign those of RocketMQ. Not set: those that Node trusts, and the ones of NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly ROCKETMQ_TLS_CA?: string;
  /** A file that holds ROCKETMQ_TLS_CA. */
  readonly ROCKETMQ_TLS_CA_FILE?: string;
  /** Our own certificate, and those between it and its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly ROCKETMQ_TLS_CERT?: string;
  /** A file that holds ROCKETMQ_TLS_CERT. */
  readonly ROCKETMQ_TLS_CERT_FILE?: string;
  /** The private key of ROCKETMQ_TLS_CERT. (a private key in PEM; not set by default) */
  readonly ROCKETMQ_TLS_KEY?: string;
  /** A file that holds ROCKETMQ_TLS_KEY. */
  readonly ROCKETMQ_TLS_KEY_FILE?: string;
  /** The name that the certificates of RocketMQ must have, where it is not the host in the address of each server. (host name or IP address; not set by default) */
  readonly ROCKETMQ_TLS_SERVER_NAME?: string;
  /** Keys that sign what goes through the broker: the first one signs, all are accepted. The same for every program. (id:secret,id:secret; each secret 32 bytes or more; it must be set, here or in the environment) */
  readonly MESSAGE_KEYS?: string;
  /** A file that holds MESSAGE_KEYS. */
  readonly MESSAGE_KEYS_FILE?: string;
  /** What becomes of a message without a signature. `accept` is for the time of an update from a version that did not sign. (default refuse) */
  readonly MESSAGE_UNSIGNED?: 'refuse' | 'accept';
  /** Consume loops of one worker process and topic. (1 to 32 loops; default 2) */
  readonly WORKER_LOOPS?: number;
  /** Batches written in one MySQL transaction at most. (1 to 32 messages; default 16) */
  readonly WORKER_RECEIVE_MAX?: number;
  /** A received message is delivered again after this time if its worker died; renewed while it is being written. The proxy refuses less than its minInvisibleTimeMillsForRecv, 10000 by default. (1000 to 43200000 ms; default 30000) */
  readonly WORKER_INVISIBLE_MS?: number;
  /** Pause before the second try of a batch that MySQL refuses; the next are 5, 15, 30 and 60 times as long. (10 to 60000 ms; default 1000) */
  readonly WORKER_RETRY_FIRST_MS?: number;
  /** The MySQL or MariaDB that holds the orders. (mysql://…; it must be set, here or in the environment) */
  readonly MYSQL_URL?: string;
  /** A file that holds MYSQL_URL. */
  readonly MYSQL_URL_FILE?: string;
  /** Password of the user, where it does not stand in MYSQL_URL. (text; not set by default) */
  readonly MYSQL_PASSWORD?: string;
  /** A file that holds MYSQL_PASSWORD. */
  readonly MYSQL_PASSWORD_FILE?: string;
  /** Whether connections are encrypted. A server that offers no TLS is then refused. (default off) */
  readonly MYSQL_TLS?: 'off' | 'on';
  /** Certificates of the authorities that sign those of MySQL. Not set: those that Node trusts, and the ones of NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly MYSQL_TLS_CA?: string;
  /** A file that holds MYSQL_TLS_CA. */
  readonly MYSQL_TLS_CA_FILE?: string;
  /** Our own certificate, and those between it and its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly MYSQL_TLS_CERT?: string;
  /** A file that holds MYSQL_TLS_CERT. */
  readonly MYSQL_TLS_CERT_FILE?: string;
  /** The private key of MYSQL_TLS_CERT. (a private key in PEM; not set by default) */
  readonly MYSQL_TLS_KEY?: string;
  /** A file that holds MYSQL_TLS_KEY. */
  readonly MYSQL_TLS_KEY_FILE?: string;
  /** The name that the certificates of MySQL must have, where it is not the host in MYSQL_URL. (host name or IP address; not set by default) */
  readonly MYSQL_TLS_SERVER_NAME?: string;
  /** Connections of one process. (1 to 200 connections; default 8) */
  readonly MYSQL_POOL_MAX?: number;
  /** How long one statement may take. (100 to 120000 ms; default 10000) */
  readonly MYSQL_QUERY_TIMEOUT_MS?: number;
  /** How long a buyer may take to pay. (1000 to 86400000 ms; default 900000) */
  readonly ORDER_PAYMENT_WINDOW_MS?: number;
  /** How long a worker keeps its slot for order ids without renewing it. (5000 to 3600000 ms; default 60000) */
  readonly ORDER_SLOT_LEASE_MS?: number;
  /** Who takes the money of POST …/pay (docs/payments.md). `simulator` moves none and is refused where NODE_ENV is production. (default none) */
  readonly PAYMENT_PROVIDER?: 'none' | 'simulator' | 'http' | 'stripe';
  /** What the provider knows us by. Stripe: the secret key (`sk_…`), or better a restricted one (`rk_…`) that may write PaymentIntents and Refunds. `http`: a bearer token. (16 characters or more; not set by default) */
  readonly PAYMENT_API_KEY?: string;
  /** A file that holds PAYMENT_API_KEY. */
  readonly PAYMENT_API_KEY_FILE?: string;
  /** Where the provider is reached: needed for `http`; for Stripe only to test against another server. https, except on this machine. (https://… or http://…; not set by default) */
  readonly PAYMENT_API_URL?: string;
  /** Secret that the payment provider signs its webhook calls with; without it every call is refused. (32 characters or more; not set by default) */
  readonly PAYMENT_WEBHOOK_SECRET?: string;
  /** A file that holds PAYMENT_WEBHOOK_SECRET. */
  readonly PAYMENT_WEBHOOK_SECRET_FILE?: string;
  /** While the secret of the webhook is changed: the one before, which is accepted too. Remove it when the provider signs with the new one. (32 characters or more; not set by default) */
  readonly PAYMENT_WEBHOOK_SECRET_BEFORE?: string;
  /** A file that holds PAYMENT_WEBHOOK_SECRET_BEFORE. */
  readonly PAYMENT_WEBHOOK_SECRET_BEFORE_FILE?: string;
  /** Which payments the webhook accepts: `live` ones are real money (`"live": true`), `test` ones are those of a trial mode of the provider. (default live) */
  readonly PAYMENT_WEBHOOK_MODE?: 'live' | 'test';
  /** A purchase that a buyer waits for is read again after this time at the latest, even without a notification. (100 to 60000 ms; default 5000) */
  readonly NOTIFICATIONS_POLL_MAX_MS?: number;
  /** Event streams open at once in one api; one more is answered 503 overloaded. Each is a connection, so fewer than HTTP_CONNECTIONS_MAX. (0 to 100000 streams; default 4000) */
  readonly EVENTS_STREAMS_MAX?: number;
  /** Event streams that one buyer may have open at one api; one more is answered 503 overloaded. (1 to 1000 streams; default 10) */
  readonly EVENTS_STREAMS_PER_BUYER_MAX?: number;
  /** The same for buyers at one address; addresses in HTTP_UNLIMITED_NETWORKS are not counted. (1 to 100000 streams; default 200) */
  readonly EVENTS_STREAMS_PER_ADDRESS_MAX?: number;
  /** A stream ends after this time, and its client connects again. (100 to 3600000 ms; default 300000) */
  readonly EVENTS_STREAM_MAX_MS?: number;
  /** Pause between two comments that keep a stream alive. At each the token is checked again. Shorter than the idle time-out of proxies and of our own server. (100 to 30000 ms; default 15000) */
  readonly EVENTS_HEARTBEAT_MS?: number;
  /** How long a client whose stream has ended is asked to wait before it connects again. (100 to 60000 ms; default 2000) */
  readonly EVENTS_RETRY_MS?: number;
  /** A batch that was deducted this long ago and is not recorded is published again; longer than a check-back takes. (1000 to 3600000 ms; default 60000) */
  readonly REDRIVE_AFTER_MS?: number;
  /** Batches that one keeper publishes again in one run, so that a slow worker is not overloaded. (1 to 10000 batches; default 2000) */
  readonly REDRIVE_MAX?: number;
  /** Pause between two runs of a job. Jobs that only watch or tidy pause up to five times as long while they find nothing. (50 to 600000 ms; default 2000) */
  readonly KEEPER_EVERY_MS?: number;
  /** Pause between two sweeps of orders whose payment deadline has passed. (50 to 600000 ms; default 2000) */
  readonly EXPIRE_SWEEP_EVERY_MS?: number;
  /** Pause between two reads of the outbox: how late notifications of an order, and released units, may be. (50 to 60000 ms; default 500) */
  readonly OUTBOX_EVERY_MS?: number;
  /** After this long another keeper takes the rows of one that died; longer than three tries of a send. (1000 to 600000 ms; default 20000) */
  readonly OUTBOX_LEASE_MS?: number;
  /** How long a finished row of the outbox is kept, for people who investigate. (60000 to 2592000000 ms; default 86400000) */
  readonly OUTBOX_KEEP_MS?: number;
  /** Whether the keeper splits a hot sale into more buckets, once; only where Redis has several masters. Buyers of the sale get 503 meanwhile. (default false) */
  readonly HOT_SALE_AUTO?: boolean;
  /** From so many attempts to buy on, all apis together, HOT_SALE_AUTO splits a sale. (1 to 1000000 purchases a second; default 10000) */
  readonly HOT_SALE_AUTO_PER_SECOND?: number;
  /** HOT_SALE_AUTO gives no sale more buckets than this. (2 to 64 buckets; default 16) */
  readonly HOT_SALE_AUTO_BUCKETS_MAX?: number;
  /** A sale that has been over for so long is retired: Redis forgets it, and MySQL answers for it. Longer than the broker keeps a half message (72 h). 0: never. (0 to 31536000000 ms; default 604800000) */
  readonly RETIRE_AFTER_MS?: number;
  /** The orders of a sale move to the archive so long after it was retired; there they are found as before. 0: never. (0 to 31536000000 ms; default 604800000) */
  readonly ARCHIVE_AFTER_MS?: number;
  /** Orders that one keeper moves to the archive in a second, at most: what is for sale comes first. (1 to 100000 orders; default 1000) */
  readonly ARCHIVE_PER_SECOND?: number;
  /** An unfinished row of the outbox this old is overdue; longer than the keeper needs after an outage. (1000 to 86400000 ms; default 60000) */
  readonly OVERDUE_OUTBOX_MS?: number;
  /** A dead letter parked this long ago is overdue: its units stay held until a person decides. (1000 to 2592000000 ms; default 3600000) */
  readonly OVERDUE_DEAD_LETTER_MS?: number;
  /** Money owed back for this long is overdue. (1000 to 2592000000 ms; default 86400000) */
  readonly OVERDUE_REFUND_MS?: number;
  /** A charge that was begun this long ago is overdue: the payment provider has not said what came of it. (60000 to 2592000000 ms; default 1200000) */
  readonly OVERDUE_PAYMENT_MS?: number;
  /** A compensation job that is due for this long is overdue: no keeper works on it. (1000 to 86400000 ms; default 600000) */
  readonly OVERDUE_COMPENSATION_MS?: number;
  /** A sale that is locked for a repair for this long is overdue: the repair does not end. (1000 to 86400000 ms; default 60000) */
  readonly OVERDUE_SHUT_MS?: number;
  /** A sale that is not closed this long after its window is overdue. (1000 to 2592000000 ms; default 86400000) */
  readonly OVERDUE_SALE_MS?: number;
  /** Pause between two checks for sales that Redis may have lost data of; they are locked until they are repaired. (50 to 60000 ms; default 500) */
  readonly REPAIR_EVERY_MS?: number;
  /** Once the workers have received what came before a loss, and nothing of the sale was written for so long, they are done with it. (0 to 60000 ms; default 1500) */
  readonly REPAIR_QUIET_MS?: number;
  /** Name server of RocketMQ: with it a repair asks the broker whether the workers have received what came before. Without it, it only waits until they write nothing more. (host:port; several, separated by semicolons, are asked in turn; not set by default) */
  readonly NAMESRV_ADDR?: string;
  /** How long a repair waits for the workers at most; batches that come later get units only while some are left. (0 to 600000 ms; default 15000) */
  readonly REPAIR_WAIT_MAX_MS?: number;
  /** After this long another keeper takes over from one that died; longer than one statement of MySQL takes. (1000 to 600000 ms; default 15000) */
  readonly REPAIR_LEASE_MS?: number;
  /** Pause between two comparisons of Redis and MySQL by the keeper; 0 switches them off. (0 to 86400000 ms; default 300000) */
  readonly RECONCILE_EVERY_MS?: number;
  /** Whether the keeper repairs what it finds; otherwise it only counts and reports it. (default false) */
  readonly RECONCILE_APPLY?: boolean;
  /** What is younger may be on its way and is not compared; longer than a re-drive takes. (100 to 86400000 ms; default 120000) */
  readonly RECONCILE_SAFE_AGE_MS?: number;
  /** A row of the outbox that is older and not finished is stuck. (1000 to 86400000 ms; default 600000) */
  readonly RECONCILE_OUTBOX_AGE_MS?: number;
  /** Markers of a closed sale that are older are removed; longer than the broker keeps a half message (72 h). (1000 to 2592000000 ms; default 345600000) */
  readonly RECONCILE_MARKER_AGE_MS?: number;
  /** Purchases that were published again for longer than this, and that no worker records, are reported; they are never given up. (1000 to 2592000000 ms; default 3600000) */
  readonly RECONCILE_WAITING_MAX_MS?: number;
  /** Requests of one sale and kind that a run reads again, one by one; the next run goes on. (1 to 1000000 requests; default 1000) */
  readonly RECONCILE_READS_MAX?: number;
  /** How long the record of a run is kept. (60000 to 31536000000 ms; default 604800000) */
  readonly RECONCILE_KEEP_MS?: number;
  /** Pause after the first attempt of a compensation; it doubles with each of the five. (10 to 3600000 ms; default 60000) */
  readonly COMPENSATE_RETRY_FIRST_MS?: number;
  /** After this long a compensation of a keeper that died is due again. (1000 to 3600000 ms; default 60000) */
  readonly COMPENSATE_LEASE_MS?: number;
  /** A page of /metrics is given again for this long, since buyers wait while it is collected; 0: each is collected. (0 to 60000 ms; default 1000) */
  readonly METRICS_CACHE_MS?: number;
  /** The collector that spans are sent to, as OTLP over HTTP in JSON, at /v1/traces below this address. Not set: none are recorded. (http://… or https://…; not set by default) */
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  /** The share of purchases that an api records whose caller sends no `traceparent`; where there is one, the caller has decided. (0 to 1; default 0.01) */
  readonly OTEL_TRACES_SAMPLER_ARG?: number;
  /** Purchases of one second that an api records because their callers ask for it, since anybody can send a `traceparent`; and as many that chance has chosen. (1 to 100000 purchases; default 100) */
  readonly TRACES_PER_SECOND_MAX?: number;
  /** Spans wait up to so long, and are sent together. (10 to 60000 ms; default 1000) */
  readonly OTEL_BSP_SCHEDULE_DELAY?: number;
  /** Spans that wait for the collector; one more is dropped and counted. A span takes about 2 kB. (16 to 100000 spans; default 2048) */
  readonly OTEL_BSP_MAX_QUEUE_SIZE?: number;
  /** Lowest level that is logged. (default info) */
  readonly LOG_LEVEL?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

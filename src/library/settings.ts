// Made from src/core/config/schema.ts: npm run generate

/** Values for the variables of the environment, by their names. One that is left out is read from the environment. */
export interface Settings {
  /** Networks of your own proxies. The api believes only the part of X-Forwarded-For that these proxies add. Not set: it ignores the header. (networks such as 10.0.0.0/8, separated by commas; not set by default) */
  readonly HTTP_TRUSTED_PROXIES?: string;
  /** Maximum number of requests of one client address to one api in ten seconds. The api answers further requests `rate_limited`. 0 disables the limit. (0 to 1000000 requests; default 3000) */
  readonly HTTP_REQUESTS_PER_ADDRESS_MAX?: number;
  /** Networks whose addresses have no limits per address. List a proxy here if HTTP_TRUSTED_PROXIES does not name it, because it looks like a single client. (networks such as 10.0.0.0/8, separated by commas; default 127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,::1,fc00::/7,fe80::/10) */
  readonly HTTP_UNLIMITED_NETWORKS?: string;
  /** Time after SIGTERM in which the api answers open requests. It then closes their connections. (0 to 15000 ms; default 8000) */
  readonly HTTP_DRAIN_MS?: number;
  /** Answers that the access log records: none (`off`), those with 4xx or 5xx (`refusals`), one in ACCESS_LOG_SAMPLE_EVERY (`sampled`), or all. (default off) */
  readonly ACCESS_LOG?: 'off' | 'refusals' | 'sampled' | 'all';
  /** File to which the api appends the access log. Not set: stdout. (path; not set by default) */
  readonly ACCESS_LOG_FILE?: string;
  /** The access log records one in this number of answers. Only ACCESS_LOG=sampled uses it. (1 to 1000000 answers; default 100) */
  readonly ACCESS_LOG_SAMPLE_EVERY?: number;
  /** Trace ids stored with purchases, so that `seckill trace` finds a purchase by its id: all that callers send, only those of recorded traces (`sampled`), or none. (default all) */
  readonly TRACE_IDS_STORED?: 'all' | 'sampled' | 'none';
  /** Only algorithm accepted for tokens that JWT_SECRET checks. (default HS256) */
  readonly JWT_ALGORITHM?: 'HS256' | 'RS256' | 'ES256' | 'EdDSA';
  /** Key that checks tokens. HS256: a shared secret, for tokens whose `kid` JWT_KEYS does not name. Other algorithms: a public key in PEM. Set at least one of JWT_SECRET, JWT_KEYS and JWT_ISSUERS. (32 characters or more; not set by default) */
  readonly JWT_SECRET?: string;
  /** A file that holds JWT_SECRET. */
  readonly JWT_SECRET_FILE?: string;
  /** HS256 keys by the `kid` of the token. With two keys, tokens of both stay valid while you change the key. The command line signs its tokens with the first key. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly JWT_KEYS?: string;
  /** A file that holds JWT_KEYS. */
  readonly JWT_KEYS_FILE?: string;
  /** Required `iss` of tokens that JWT_SECRET or JWT_KEYS check. Not set: any value. (text; not set by default) */
  readonly JWT_ISSUER?: string;
  /** Required entry in `aud` of tokens that JWT_SECRET or JWT_KEYS check. Not set: any value. (text; not set by default) */
  readonly JWT_AUDIENCE?: string;
  /** Identity providers whose tokens the api accepts, as JSON. [Identity](identity.md) describes the format. Not set: no provider. (JSON list of issuers; not set by default) */
  readonly JWT_ISSUERS?: string;
  /** Maximum lifetime of a token, from `iat` to `exp`. The api refuses tokens with a longer lifetime, so that a leaked token expires in time. (60000 to 31536000000 ms; default 86400000) */
  readonly JWT_LIFE_MAX_MS?: number;
  /** Keys that may sign requests. The rules name the keys that the api accepts now. Not set: the api refuses rules that need a signing key. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly ADMISSION_SIGN_KEYS?: string;
  /** A file that holds ADMISSION_SIGN_KEYS. */
  readonly ADMISSION_SIGN_KEYS_FILE?: string;
  /** Keys that seal purchase tokens, tickets and passes. Every api needs the same keys: it seals with the first and accepts all. Not set: the api refuses rules that need a sealing key. (id:secret,id:secret; each secret 32 bytes or more; not set by default) */
  readonly ADMISSION_SEAL_KEYS?: string;
  /** A file that holds ADMISSION_SEAL_KEYS. */
  readonly ADMISSION_SEAL_KEYS_FILE?: string;
  /** A sale with this many purchase attempts per second, or more, is reported as hot (10 s average over all apis). 0 disables the report and HOT_SALE_AUTO. (0 to 1000000 purchases a second; default 2000) */
  readonly HOT_SALE_PER_SECOND?: number;
  /** Whether the keeper splits a sale with 10,000 purchase attempts per second into more buckets. It does so once per sale, and only if Redis has several masters. Buyers of the sale get 503 during the split. (default false) */
  readonly HOT_SALE_AUTO?: boolean;
  /** Maximum number of purchases in one half message. 1 disables group commit. (1 to 512 purchases; default 192) */
  readonly BATCH_SIZE_MAX?: number;
  /** Maximum number of purchases that wait for a batch in one api. The api answers further purchases `overloaded`. (1 to 1000000 purchases; default 8192) */
  readonly BATCH_QUEUE_MAX?: number;
  /** Redis that holds the stock: one server, a master that sentinels name, or a cluster (name some of its servers). `rediss` uses TLS for all connections, including those to sentinels. User and password are those of Redis, not of the sentinels. (redis://… or rediss://… or redis[s]+sentinel://[user:password@]host:port,host:port/master-name[/db] or redis[s]+cluster://[user:password@]host:port,host:port; it must be set, here or in the environment) */
  readonly REDIS_URL?: string;
  /** A file that holds REDIS_URL. */
  readonly REDIS_URL_FILE?: string;
  /** Password for Redis, if REDIS_URL has none. (text; not set by default) */
  readonly REDIS_PASSWORD?: string;
  /** A file that holds REDIS_PASSWORD. */
  readonly REDIS_PASSWORD_FILE?: string;
  /** User name for Sentinel authentication. Not set: the default user. (text; not set by default) */
  readonly REDIS_SENTINEL_USER?: string;
  /** Password for Sentinel authentication. Not set: no password. (text; not set by default) */
  readonly REDIS_SENTINEL_PASSWORD?: string;
  /** A file that holds REDIS_SENTINEL_PASSWORD. */
  readonly REDIS_SENTINEL_PASSWORD_FILE?: string;
  /** Certificates of the authorities that sign the certificates of Redis and its sentinels. Not set: the authorities that Node.js trusts and those in NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly REDIS_TLS_CA?: string;
  /** A file that holds REDIS_TLS_CA. */
  readonly REDIS_TLS_CA_FILE?: string;
  /** Client certificate, followed by the certificates up to its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly REDIS_TLS_CERT?: string;
  /** A file that holds REDIS_TLS_CERT. */
  readonly REDIS_TLS_CERT_FILE?: string;
  /** Private key of REDIS_TLS_CERT. (a private key in PEM; not set by default) */
  readonly REDIS_TLS_KEY?: string;
  /** A file that holds REDIS_TLS_KEY. */
  readonly REDIS_TLS_KEY_FILE?: string;
  /** Host name that the certificates of Redis and its sentinels must have. Not set: the host in REDIS_URL. (host name or IP address; not set by default) */
  readonly REDIS_TLS_SERVER_NAME?: string;
  /** Time limit for a reply of Redis. After it, the outcome of the command is unknown. (50 to 30000 ms; default 1500) */
  readonly REDIS_REPLY_TIMEOUT_MS?: number;
  /** How long Redis remembers that a batch was recorded or took no units. Must be longer than the broker keeps a half message (72 h by default). (1000 to 2592000000 ms; default 345600000) */
  readonly MARKER_LIFE_MS?: number;
  /** Number of Redis replicas that must store a purchase before its buyer gets 202 ([durability](durability.md)). 0 waits for none. (0 to 8 replicas; default 0) */
  readonly REDIS_WAIT_REPLICAS?: number;
  /** Time limit for the replicas of REDIS_WAIT_REPLICAS. After it, the buyer gets `outcome_unknown`, and the order is still made. (10 to 10000 ms; default 500) */
  readonly REDIS_WAIT_REPLICAS_MS?: number;
  /** gRPC endpoint of the RocketMQ proxy. (host:port; it must be set, here or in the environment) */
  readonly ROCKETMQ_ENDPOINT?: string;
  /** Address that calls use: the address that the broker returns (`handed_out`), or always ROCKETMQ_ENDPOINT (`endpoint`), for a single broker behind a port mapping. (default handed_out) */
  readonly ROCKETMQ_ROUTE?: 'handed_out' | 'endpoint';
  /** User name for RocketMQ. Not set: the programs send no credentials, and a broker with access control refuses them. (text; not set by default) */
  readonly ROCKETMQ_ACCESS_KEY?: string;
  /** Secret of ROCKETMQ_ACCESS_KEY. It signs requests and is never sent. (text; not set by default) */
  readonly ROCKETMQ_ACCESS_SECRET?: string;
  /** A file that holds ROCKETMQ_ACCESS_SECRET. */
  readonly ROCKETMQ_ACCESS_SECRET_FILE?: string;
  /** Session token for temporary credentials, which some clouds issue. It is sent with each request. (text; not set by default) */
  readonly ROCKETMQ_SESSION_TOKEN?: string;
  /** A file that holds ROCKETMQ_SESSION_TOKEN. */
  readonly ROCKETMQ_SESSION_TOKEN_FILE?: string;
  /** Connections to RocketMQ that use TLS: none (`off`), those to the gRPC proxy (`grpc`), or also the admin connections to name servers and brokers (`on`). (default off) */
  readonly ROCKETMQ_TLS?: 'off' | 'grpc' | 'on';
  /** Certificates of the authorities that sign the certificates of RocketMQ. Not set: the authorities that Node.js trusts and those in NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly ROCKETMQ_TLS_CA?: string;
  /** A file that holds ROCKETMQ_TLS_CA. */
  readonly ROCKETMQ_TLS_CA_FILE?: string;
  /** Client certificate, followed by the certificates up to its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly ROCKETMQ_TLS_CERT?: string;
  /** A file that holds ROCKETMQ_TLS_CERT. */
  readonly ROCKETMQ_TLS_CERT_FILE?: string;
  /** Private key of ROCKETMQ_TLS_CERT. (a private key in PEM; not set by default) */
  readonly ROCKETMQ_TLS_KEY?: string;
  /** A file that holds ROCKETMQ_TLS_KEY. */
  readonly ROCKETMQ_TLS_KEY_FILE?: string;
  /** Host name that the certificates of RocketMQ must have. Not set: the host in the address of each server. (host name or IP address; not set by default) */
  readonly ROCKETMQ_TLS_SERVER_NAME?: string;
  /** Keys that sign messages in the broker. Every program needs the same keys: it signs with the first and accepts all. (id:secret,id:secret; each secret 32 bytes or more; it must be set, here or in the environment) */
  readonly MESSAGE_KEYS?: string;
  /** A file that holds MESSAGE_KEYS. */
  readonly MESSAGE_KEYS_FILE?: string;
  /** Whether programs accept messages without a signature. Use `accept` only during an upgrade from a release that did not sign. (default refuse) */
  readonly MESSAGE_UNSIGNED?: 'refuse' | 'accept';
  /** Number of loops in which one worker consumes messages of a topic. (1 to 32 loops; default 2) */
  readonly WORKER_LOOPS?: number;
  /** Time after which the broker delivers a message again if its worker died. Must be at least twice MYSQL_QUERY_TIMEOUT_MS, and no less than minInvisibleTimeMillsForRecv of the RocketMQ proxy (10,000 by default). (1000 to 43200000 ms; default 30000) */
  readonly WORKER_INVISIBLE_MS?: number;
  /** MySQL or MariaDB database that holds the orders. (mysql://…; it must be set, here or in the environment) */
  readonly MYSQL_URL?: string;
  /** A file that holds MYSQL_URL. */
  readonly MYSQL_URL_FILE?: string;
  /** Password for MySQL, if MYSQL_URL has none. (text; not set by default) */
  readonly MYSQL_PASSWORD?: string;
  /** A file that holds MYSQL_PASSWORD. */
  readonly MYSQL_PASSWORD_FILE?: string;
  /** Whether connections to MySQL use TLS. `on` refuses a server without TLS. (default off) */
  readonly MYSQL_TLS?: 'off' | 'on';
  /** Certificates of the authorities that sign the certificates of MySQL. Not set: the authorities that Node.js trusts and those in NODE_EXTRA_CA_CERTS. (certificates in PEM; not set by default) */
  readonly MYSQL_TLS_CA?: string;
  /** A file that holds MYSQL_TLS_CA. */
  readonly MYSQL_TLS_CA_FILE?: string;
  /** Client certificate, followed by the certificates up to its authority, for servers that ask for one. (certificates in PEM; not set by default) */
  readonly MYSQL_TLS_CERT?: string;
  /** A file that holds MYSQL_TLS_CERT. */
  readonly MYSQL_TLS_CERT_FILE?: string;
  /** Private key of MYSQL_TLS_CERT. (a private key in PEM; not set by default) */
  readonly MYSQL_TLS_KEY?: string;
  /** A file that holds MYSQL_TLS_KEY. */
  readonly MYSQL_TLS_KEY_FILE?: string;
  /** Host name that the certificates of MySQL must have. Not set: the host in MYSQL_URL. (host name or IP address; not set by default) */
  readonly MYSQL_TLS_SERVER_NAME?: string;
  /** Maximum number of MySQL connections of one process. A worker needs at least twice WORKER_LOOPS. (1 to 200 connections; default 8) */
  readonly MYSQL_POOL_MAX?: number;
  /** Time limit for one SQL statement. (100 to 120000 ms; default 10000) */
  readonly MYSQL_QUERY_TIMEOUT_MS?: number;
  /** Time that a buyer has to pay. An unpaid order then expires. (1000 to 86400000 ms; default 900000) */
  readonly ORDER_PAYMENT_WINDOW_MS?: number;
  /** Service that takes payments ([payments](payments.md)). `simulator` moves no money and is refused if NODE_ENV is production. (default none) */
  readonly PAYMENT_PROVIDER?: 'none' | 'simulator' | 'http' | 'stripe';
  /** Credential for the payment provider. Stripe: a secret key (`sk_…`), or better a restricted key (`rk_…`) that may write PaymentIntents and Refunds. `http`: a bearer token. (16 characters or more; not set by default) */
  readonly PAYMENT_API_KEY?: string;
  /** A file that holds PAYMENT_API_KEY. */
  readonly PAYMENT_API_KEY_FILE?: string;
  /** Address of the payment provider. `http` needs it; Stripe uses it only for tests against another server. Must be https, except on this machine. (https://… or http://…; not set by default) */
  readonly PAYMENT_API_URL?: string;
  /** Secret with which the payment provider signs its webhook calls. Not set: the api refuses every call. (32 characters or more; not set by default) */
  readonly PAYMENT_WEBHOOK_SECRET?: string;
  /** A file that holds PAYMENT_WEBHOOK_SECRET. */
  readonly PAYMENT_WEBHOOK_SECRET_FILE?: string;
  /** Previous secret of the webhook, accepted while you change the secret. Remove it when the provider signs with the new secret. (32 characters or more; not set by default) */
  readonly PAYMENT_WEBHOOK_SECRET_BEFORE?: string;
  /** A file that holds PAYMENT_WEBHOOK_SECRET_BEFORE. */
  readonly PAYMENT_WEBHOOK_SECRET_BEFORE_FILE?: string;
  /** Payments that the webhook accepts: real money (`live`, in a call `"live": true`), or the test mode of the provider (`test`). (default live) */
  readonly PAYMENT_WEBHOOK_MODE?: 'live' | 'test';
  /** Maximum number of open event streams at one api. The api answers further streams 503 `overloaded`. Must be below HTTP_CONNECTIONS_MAX, because each stream is a connection. (0 to 100000 streams; default 4000) */
  readonly EVENTS_STREAMS_MAX?: number;
  /** Pause between two comments that keep an event stream alive. The api also checks the token of the stream again each time. Must be shorter than the idle timeout of every proxy. (100 to 30000 ms; default 15000) */
  readonly EVENTS_HEARTBEAT_MS?: number;
  /** How long a finished row of the outbox is kept for investigations. (60000 to 2592000000 ms; default 86400000) */
  readonly OUTBOX_KEEP_MS?: number;
  /** Time from the end of a sale until it leaves Redis, and MySQL answers for it. Must be longer than the broker keeps a half message (72 h by default). 0 keeps every sale in Redis. (0 to 31536000000 ms; default 604800000) */
  readonly RETIRE_AFTER_MS?: number;
  /** Time from when a sale leaves Redis until its orders move to the archive, where they can still be found. 0 disables the archive. (0 to 31536000000 ms; default 604800000) */
  readonly ARCHIVE_AFTER_MS?: number;
  /** Maximum number of orders that one keeper archives in a second. A low number leaves MySQL free for running sales. (1 to 100000 orders; default 1000) */
  readonly ARCHIVE_PER_SECOND?: number;
  /** Name servers of RocketMQ. A repair uses them to ask the broker whether the workers have received all earlier messages; `seckill mq` and the metrics of RocketMQ need them too. Not set: a repair waits until the workers write nothing more. (host:port; separate several with semicolons; not set by default) */
  readonly NAMESRV_ADDR?: string;
  /** Pause between two comparisons of Redis and MySQL by the keeper. 0 disables them. (0 to 86400000 ms; default 300000) */
  readonly RECONCILE_EVERY_MS?: number;
  /** Whether the keeper repairs the differences it finds. Otherwise it only counts and reports them. (default false) */
  readonly RECONCILE_APPLY?: boolean;
  /** How long the record of a comparison is kept. (60000 to 31536000000 ms; default 604800000) */
  readonly RECONCILE_KEEP_MS?: number;
  /** Collector that receives spans, as OTLP over HTTP in JSON, at /v1/traces below this address. Not set: no spans are recorded. (http://… or https://…; not set by default) */
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string;
  /** Share of purchases that an api records if the caller sends no `traceparent`. With a `traceparent`, the caller decides. (0 to 1; default 0.01) */
  readonly OTEL_TRACES_SAMPLER_ARG?: number;
  /** Maximum number of spans that wait for the collector. Further spans are dropped and counted. A span takes about 2 kB. (16 to 100000 spans; default 2048) */
  readonly OTEL_BSP_MAX_QUEUE_SIZE?: number;
  /** Lowest level of log lines that are written. (default info) */
  readonly LOG_LEVEL?: 'debug' | 'info' | 'warn' | 'error' | 'silent';
}

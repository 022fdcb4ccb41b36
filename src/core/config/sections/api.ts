import { isCurrency } from '../../amount-text.js';
import { PUBLIC_ALGORITHMS } from '../../public-key.js';
import { fixed, integer, issuerList, keyList, networks, origins, text, url, word, type Keys } from '../key.js';

// Settings of the api: HTTP, admission, and the purchase itself.

export const http = {
  host: text({
    env: 'HTTP_HOST',
    doc: 'Address on which the api serves buyers.',
    fallback: '127.0.0.1',
    minLength: 1,
    range: 'address',
  }),
  port: integer({
    env: 'PORT',
    doc: 'Port on which the api serves buyers. 0 picks a free port.',
    unit: '',
    fallback: 8080,
    min: 0,
    max: 65535,
  }),
  maxConnections: integer({
    env: 'HTTP_CONNECTIONS_MAX',
    doc: 'Maximum number of open connections of buyers. The api closes others at once, and idle connections once 90 % are open.',
    unit: 'connections',
    fallback: 10000,
    min: 1,
    max: 100000,
  }),
  /** Enough for a client on a bad line, which needs a second or two. A slow-request attack gets no more time either. */
  headersTimeoutMs: fixed('HTTP_HEADERS_TIMEOUT_MS', 5000),
  /** Longer than `headersTimeoutMs`, because the body follows the headers. */
  requestTimeoutMs: fixed('HTTP_REQUEST_TIMEOUT_MS', 10_000),
  keepAliveTimeoutMs: integer({
    env: 'HTTP_KEEP_ALIVE_TIMEOUT_MS',
    doc: 'Time after which the api closes an idle connection. A proxy must close it earlier.',
    unit: 'ms',
    fallback: 30000,
    min: 100,
    max: 600000,
  }),
  trustedProxies: networks({
    env: 'HTTP_TRUSTED_PROXIES',
    doc: 'Networks of your proxies. The api ignores X-Forwarded-For from other addresses.',
    optional: true,
  }),
  connectionsPerAddressMax: integer({
    env: 'HTTP_CONNECTIONS_PER_ADDRESS_MAX',
    doc: 'Maximum number of open connections from one client address ([default limits](admission.md#default-limits)). 0 disables the limit.',
    unit: 'connections',
    fallback: 100,
    min: 0,
    max: 100000,
  }),
  requestsPerAddressMax: integer({
    env: 'HTTP_REQUESTS_PER_ADDRESS_MAX',
    doc: 'Maximum number of requests from one client address to one api in ten seconds. 0 disables the limit.',
    unit: 'requests',
    fallback: 3000,
    min: 0,
    max: 1000000,
  }),
  unlimitedNetworks: networks({
    env: 'HTTP_UNLIMITED_NETWORKS',
    doc: 'Networks without limits per address. List a proxy here if HTTP_TRUSTED_PROXIES does not name it, because it looks like a single client.',
    fallback: '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,::1,fc00::/7,fe80::/10',
  }),
  drainMs: integer({
    env: 'HTTP_DRAIN_MS',
    doc: 'How long after SIGTERM the api still answers open requests.',
    unit: 'ms',
    fallback: 8000,
    min: 0,
    max: 15000,
  }),
} as const satisfies Keys;

export const shop = {
  name: text({
    env: 'SHOP_NAME',
    doc: 'Shop name at the top of a sale page. Not set: the host name.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  pictureUrl: url({
    env: 'SHOP_PICTURE_URL',
    doc: 'Address of the picture on a sale page. It may contain `{sku}` and `{saleId}`. Not set: the page draws a picture.',
    protocols: ['https:', 'http:'],
    optional: true,
  }),
  signInUrl: url({
    env: 'SHOP_SIGN_IN_URL',
    doc: 'Address to which a sale page sends buyers to sign in. It may contain `{saleId}`. Not set: it tells buyers to sign in at the shop.',
    protocols: ['https:', 'http:'],
    optional: true,
  }),
  origins: origins({
    env: 'SHOP_ORIGINS',
    doc: 'Origins whose pages may call the API of buyers (CORS) and show a [sale page](buying.md#the-sale-page) in a frame. Not set: none.',
    optional: true,
  }),
} as const satisfies Keys;

export const operators = {
  host: text({
    env: 'OPERATORS_HOST',
    doc: 'Address on which the api serves operators and monitoring ([ports](deployment.md#ports)). Buyers must not reach it.',
    fallback: '127.0.0.1',
    minLength: 1,
    range: 'address',
  }),
  // Continues the ports of worker (9101) and keeper (9102). 9100 is Prometheus' node exporter.
  port: integer({
    env: 'OPERATORS_PORT',
    doc: 'Port on which the api serves operators and monitoring. 0 picks a free port.',
    unit: '',
    fallback: 9103,
    min: 0,
    max: 65535,
  }),
  /** Limit per address. A console sends only a few requests per second. */
  requestsPerSecond: fixed('OPERATORS_REQUESTS_PER_SECOND', 200),
  /** One hour. Each second of a busy sale takes a few hundred bytes of Redis. */
  consoleHistoryMs: fixed('CONSOLE_HISTORY_MS', 3_600_000),
} as const satisfies Keys;

export const accessLog = {
  kind: word({
    env: 'ACCESS_LOG',
    doc: 'Answers in the access log: none (`off`), those with 4xx or 5xx (`refusals`), one in ACCESS_LOG_SAMPLE_EVERY (`sampled`), or all.',
    words: ['off', 'refusals', 'sampled', 'all'],
    fallback: 'off',
  }),
  file: text({
    env: 'ACCESS_LOG_FILE',
    doc: 'File to which the api appends the access log. Not set: stdout.',
    optional: true,
    minLength: 1,
    range: 'path',
  }),
  sampleEvery: integer({
    env: 'ACCESS_LOG_SAMPLE_EVERY',
    doc: 'With ACCESS_LOG=sampled, one answer in this many is logged.',
    unit: 'answers',
    fallback: 100,
    min: 1,
    max: 1000000,
  }),
} as const satisfies Keys;

export const traceIds = {
  stored: word({
    env: 'TRACE_IDS_STORED',
    doc: 'Trace ids by which `seckill trace` finds a purchase: all that callers send, only those of recorded traces (`sampled`), or none.',
    words: ['all', 'sampled', 'none'],
    fallback: 'all',
  }),
} as const satisfies Keys;

export const auth = {
  algorithm: word({
    env: 'JWT_ALGORITHM',
    doc: 'The only accepted algorithm of tokens verified with JWT_SECRET.',
    words: ['HS256', ...PUBLIC_ALGORITHMS],
    fallback: 'HS256',
  }),
  key: text({
    env: 'JWT_SECRET',
    doc: 'Key for verifying tokens. HS256: a shared secret, for tokens whose `kid` is not in JWT_KEYS. Other algorithms: a public key in PEM. Set JWT_SECRET, JWT_KEYS or JWT_ISSUERS.',
    minLength: 32,
    optional: true,
    secret: true,
    range: '32 characters or more',
  }),
  keys: keyList({
    env: 'JWT_KEYS',
    doc: 'HS256 keys by the `kid` of the token. Tokens of all keys are valid. Commands sign with the first key.',
    optional: true,
  }),
  issuer: text({
    env: 'JWT_ISSUER',
    doc: 'Required `iss` of tokens verified with JWT_SECRET or JWT_KEYS. Not set: any value.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  audience: text({
    env: 'JWT_AUDIENCE',
    doc: 'Required entry in `aud` of tokens verified with JWT_SECRET or JWT_KEYS. Not set: any value.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  issuers: issuerList({
    env: 'JWT_ISSUERS',
    doc: 'Identity providers whose tokens the api accepts ([format](identity.md)). Not set: none.',
    optional: true,
  }),
  lifeMaxMs: integer({
    env: 'JWT_LIFE_MAX_MS',
    doc: 'Maximum lifetime of a token, from `iat` to `exp`.',
    unit: 'ms',
    fallback: 86400000,
    min: 60000,
    max: 31536000000,
  }),
  /** Maximum number of verified tokens in memory. Each takes about 500 bytes. */
  cacheMax: fixed('JWT_CACHE_MAX', 20_000),
} as const satisfies Keys;

export const admission = {
  signKeys: keyList({
    env: 'ADMISSION_SIGN_KEYS',
    doc: 'Keys with which requests may be signed, if the rules name them. Not set: the api refuses rules that need one.',
    optional: true,
  }),
  sealKeys: keyList({
    env: 'ADMISSION_SEAL_KEYS',
    doc: 'Keys that seal purchase tokens, tickets and passes, the same for every api. The first key seals, all are accepted. Not set: the api refuses rules that need one.',
    optional: true,
  }),
} as const satisfies Keys;

export const hotSales = {
  perSecond: integer({
    env: 'HOT_SALE_PER_SECOND',
    doc: 'A sale with this many purchase attempts per second (10 s average over all apis) is reported as hot. 0 disables the report and HOT_SALE_AUTO.',
    unit: 'purchases a second',
    fallback: 2000,
    min: 0,
    max: 1000000,
  }),
  auto: word({
    env: 'HOT_SALE_AUTO',
    doc: 'Whether the keeper splits a sale with 10,000 purchase attempts per second into [more buckets](operations.md#hot-sales-and-buckets), once, if Redis has several masters.',
    words: ['true', 'false'],
    fallback: 'false',
  }),
} as const satisfies Keys;

export const batch = {
  sizeMax: integer({
    env: 'BATCH_SIZE_MAX',
    doc: 'Maximum number of purchases in one half message. 1 disables group commit.',
    unit: 'purchases',
    fallback: 192,
    min: 1,
    max: 512,
  }),
  /** Limit per sale and bucket. A higher limit only moves the queue from the api into Redis and the broker. */
  inFlightMax: fixed('BATCH_IN_FLIGHT_MAX', 3),
  /** Pause between batches below a quarter of `sizeMax`, per sale and bucket. No buyer notices, but batches fill. */
  gatherMs: fixed('BATCH_GATHER_MS', 25),
  queueMax: integer({
    env: 'BATCH_QUEUE_MAX',
    doc: 'Maximum number of purchases that wait for a batch in one api. Others get 503 `overloaded`.',
    unit: 'purchases',
    fallback: 8192,
    min: 1,
    max: 1000000,
  }),
  /** A purchase that waits longer than this gets `overloaded`. At least twice `gatherMs`. */
  waitMaxMs: fixed('BATCH_WAIT_MAX_MS', 2000),
} as const satisfies Keys;

const currencyText = text({
  env: 'SALE_CURRENCY',
  doc: 'ISO 4217 code of the currency of a new sale that names none.',
  fallback: 'EUR',
  minLength: 3,
  range: 'three capital letters',
});

export const sale = {
  currency: {
    ...currencyText,
    parse: (value: string): string => {
      if (!isCurrency(value))
        throw new Error(
          `must be three capital letters of ISO 4217 such as EUR, but is ${JSON.stringify(value.slice(0, 20))}`,
        );
      return value;
    },
  },
} as const satisfies Keys;

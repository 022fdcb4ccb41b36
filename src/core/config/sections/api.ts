import { isCurrency } from '../../amount-text.js';
import { PUBLIC_ALGORITHMS } from '../../public-key.js';
import { integer, issuerList, keyList, networks, origins, text, url, word, type Keys } from '../key.js';

// What only the api reads: HTTP, admission, and the purchase itself.

export const http = {
  host: text({
    env: 'HTTP_HOST',
    doc: 'Address to listen on.',
    fallback: '127.0.0.1',
    minLength: 1,
    range: 'address',
  }),
  port: integer({
    env: 'PORT',
    doc: 'Port of the api; 0 picks a free one.',
    unit: '',
    fallback: 8080,
    min: 0,
    max: 65535,
  }),
  maxConnections: integer({
    env: 'HTTP_CONNECTIONS_MAX',
    doc: 'Open connections; one more is closed at once. From nine tenths on, idle connections are closed.',
    unit: 'connections',
    fallback: 10000,
    min: 1,
    max: 100000,
  }),
  headersTimeoutMs: integer({
    env: 'HTTP_HEADERS_TIMEOUT_MS',
    doc: 'A client must have sent its headers by then.',
    unit: 'ms',
    fallback: 5000,
    min: 100,
    max: 60000,
  }),
  requestTimeoutMs: integer({
    env: 'HTTP_REQUEST_TIMEOUT_MS',
    doc: 'A client must have sent its body by then.',
    unit: 'ms',
    fallback: 10000,
    min: 100,
    max: 60000,
  }),
  keepAliveTimeoutMs: integer({
    env: 'HTTP_KEEP_ALIVE_TIMEOUT_MS',
    doc: 'A connection without a request is closed after this.',
    unit: 'ms',
    fallback: 30000,
    min: 100,
    max: 600000,
  }),
  trustedProxies: networks({
    env: 'HTTP_TRUSTED_PROXIES',
    doc: 'Networks of our own proxies. Only what they have added to X-Forwarded-For is read; not set: nothing of it.',
    optional: true,
  }),
  connectionsPerAddressMax: integer({
    env: 'HTTP_CONNECTIONS_PER_ADDRESS_MAX',
    doc: 'Open connections of one address; one more is closed at once. An IPv6 /64 network is one address, and a /56 may have four times as many.',
    unit: 'connections; 0: any number',
    fallback: 100,
    min: 0,
    max: 100000,
  }),
  requestsPerAddressMax: integer({
    env: 'HTTP_REQUESTS_PER_ADDRESS_MAX',
    doc: 'Requests of one address to one api in ten seconds, of any kind; one more gets `rate_limited`. Limits that all apis share are in the rules.',
    unit: 'requests; 0: any number',
    fallback: 3000,
    min: 0,
    max: 1000000,
  }),
  unlimitedNetworks: networks({
    env: 'HTTP_UNLIMITED_NETWORKS',
    doc: 'Networks whose addresses are not counted one by one: a proxy in them that is not named in HTTP_TRUSTED_PROXIES would be one client.',
    fallback: '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,169.254.0.0/16,::1,fc00::/7,fe80::/10',
  }),
  drainMs: integer({
    env: 'HTTP_DRAIN_MS',
    doc: 'Requests under way at SIGTERM are answered within this time.',
    unit: 'ms',
    fallback: 8000,
    min: 0,
    max: 15000,
  }),
} as const satisfies Keys;

export const shop = {
  name: text({
    env: 'SHOP_NAME',
    doc: 'What stands at the top of the page of a sale. Not set: its host.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  pictureUrl: url({
    env: 'SHOP_PICTURE_URL',
    doc: 'Where that page finds the picture of what is sold; `{sku}` and `{saleId}` in it stand for those of the sale. Not set: it draws one.',
    protocols: ['https:', 'http:'],
    optional: true,
  }),
  signInUrl: url({
    env: 'SHOP_SIGN_IN_URL',
    doc: 'Where that page sends who is not signed in; `{saleId}` in it stands for the sale. Not set: it says that the shop signs buyers in.',
    protocols: ['https:', 'http:'],
    optional: true,
  }),
  origins: origins({
    env: 'SHOP_ORIGINS',
    doc: 'Origins whose pages may call the API of buyers (CORS), and show the page of a sale in a frame ([buyer page](buyer-page.md)). Not set: none.',
    optional: true,
  }),
} as const satisfies Keys;

export const operators = {
  host: text({
    env: 'OPERATORS_HOST',
    doc: 'Address on which operators and monitoring are served: admin routes, /metrics, /readyz with reasons. Not one that buyers reach. Only requests for it, an IP address or localhost are answered.',
    fallback: '127.0.0.1',
    minLength: 1,
    range: 'address',
  }),
  // Beside worker and keeper (9101, 9102); 9100 is that of the node exporter of Prometheus.
  port: integer({
    env: 'OPERATORS_PORT',
    doc: 'Port for operators and monitoring; 0 picks a free one.',
    unit: '',
    fallback: 9103,
    min: 0,
    max: 65535,
  }),
  maxConnections: integer({
    env: 'OPERATORS_CONNECTIONS_MAX',
    doc: 'Open connections of operators and monitoring; one more is closed at once. A browser with the console opens up to six.',
    unit: 'connections',
    fallback: 400,
    min: 1,
    max: 10000,
  }),
  requestsPerSecond: integer({
    env: 'OPERATORS_REQUESTS_PER_SECOND',
    doc: 'Requests of one address to the port for operators in a second; one more gets `rate_limited`. A console sends a few.',
    unit: 'requests',
    fallback: 200,
    min: 1,
    max: 100000,
  }),
  consoleStreamsMax: integer({
    env: 'CONSOLE_STREAMS_MAX',
    doc: 'Open consoles that follow what is going on at one api; one more gets `overloaded`.',
    unit: 'streams',
    fallback: 100,
    min: 1,
    max: 1000,
  }),
  consoleHistoryMs: integer({
    env: 'CONSOLE_HISTORY_MS',
    doc: 'How long Redis remembers what buyers of each sale were answered in each second. A second of a busy sale takes some hundred bytes.',
    unit: 'ms',
    fallback: 3600000,
    min: 10000,
    max: 86400000,
  }),
} as const satisfies Keys;

export const accessLog = {
  kind: word({
    env: 'ACCESS_LOG',
    doc: 'Which answers get a line of JSON with route, code, reason, request, user, sale and time: none, refusals (4xx and 5xx), one of ACCESS_LOG_SAMPLE_EVERY, or all.',
    words: ['off', 'refusals', 'sampled', 'all'],
    fallback: 'off',
  }),
  file: text({
    env: 'ACCESS_LOG_FILE',
    doc: 'The file that lines are appended to. Not set: stdout.',
    optional: true,
    minLength: 1,
    range: 'path',
  }),
  sampleEvery: integer({
    env: 'ACCESS_LOG_SAMPLE_EVERY',
    doc: 'With ACCESS_LOG=sampled one answer of so many gets a line.',
    unit: 'answers',
    fallback: 100,
    min: 1,
    max: 1000000,
  }),
  perSecondMax: integer({
    env: 'ACCESS_LOG_PER_SECOND_MAX',
    doc: 'Lines of one second; how many more there were is written instead.',
    unit: 'lines',
    fallback: 2000,
    min: 1,
    max: 100000,
  }),
} as const satisfies Keys;

export const traceIds = {
  stored: word({
    env: 'TRACE_IDS_STORED',
    doc: 'Which trace ids are stored with purchases, so that `seckill trace` finds them by it: all that callers send, those of traces that are recorded, or none.',
    words: ['all', 'sampled', 'none'],
    fallback: 'all',
  }),
} as const satisfies Keys;

export const auth = {
  algorithm: word({
    env: 'JWT_ALGORITHM',
    doc: 'What JWT_SECRET is the key of: the only algorithm of tokens that are checked with it.',
    words: ['HS256', ...PUBLIC_ALGORITHMS],
    fallback: 'HS256',
  }),
  key: text({
    env: 'JWT_SECRET',
    doc: 'HS256: a shared secret, for tokens whose `kid` is none of JWT_KEYS. Otherwise a public key, PEM. Tokens need JWT_SECRET, JWT_KEYS or JWT_ISSUERS.',
    minLength: 32,
    optional: true,
    secret: true,
    range: '32 characters or more',
  }),
  keys: keyList({
    env: 'JWT_KEYS',
    doc: 'HS256 keys by the `kid` of the token, so that keys can be changed while tokens of both are good. The first one signs the tokens that the command line makes.',
    optional: true,
  }),
  issuer: text({
    env: 'JWT_ISSUER',
    doc: 'What tokens of JWT_SECRET and JWT_KEYS must have as `iss`. Not set: anything.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  audience: text({
    env: 'JWT_AUDIENCE',
    doc: 'What tokens of JWT_SECRET and JWT_KEYS must have in `aud`. Not set: anything.',
    optional: true,
    minLength: 1,
    range: 'text',
  }),
  issuers: issuerList({
    env: 'JWT_ISSUERS',
    doc: 'Identity providers whose tokens are accepted, as JSON; [Identity](identity.md) has the form.',
    optional: true,
  }),
  jwksRefreshMs: integer({
    env: 'JWKS_REFRESH_MS',
    doc: 'The keys of each issuer are read this often, and at once when a token names an unknown one.',
    unit: 'ms',
    fallback: 300000,
    min: 1000,
    max: 3600000,
  }),
  lifeMaxMs: integer({
    env: 'JWT_LIFE_MAX_MS',
    doc: 'A token that is good for longer, from `iat` to `exp`, is refused: a leaked one ends by then.',
    unit: 'ms',
    fallback: 86400000,
    min: 60000,
    max: 31536000000,
  }),
  toleranceMs: integer({
    env: 'JWT_CLOCK_TOLERANCE_MS',
    doc: 'How far the clock of an issuer may be from ours.',
    unit: 'ms',
    fallback: 5000,
    min: 0,
    max: 300000,
  }),
  cacheMax: integer({
    env: 'JWT_CACHE_MAX',
    doc: 'Verified tokens kept in memory.',
    unit: 'tokens',
    fallback: 20000,
    min: 0,
    max: 1000000,
  }),
} as const satisfies Keys;

export const admission = {
  signKeys: keyList({
    env: 'ADMISSION_SIGN_KEYS',
    doc: 'Keys that may sign requests; the rules name those that are accepted now. Not set: rules that need one are refused.',
    optional: true,
  }),
  sealKeys: keyList({
    env: 'ADMISSION_SEAL_KEYS',
    doc: 'Keys that seal purchase tokens, tickets and passes, the same for every api: the first one seals, all are accepted. Not set: rules that need one are refused.',
    optional: true,
  }),
} as const satisfies Keys;

export const gate = {
  snapshotMemoryMs: integer({
    env: 'GATE_CARD_MEMORY_MS',
    doc: 'A sale snapshot in memory is used this long.',
    unit: 'ms',
    fallback: 1000,
    min: 10,
    max: 60000,
  }),
  snapshotCacheMs: integer({
    env: 'GATE_CARD_CACHE_MS',
    doc: 'A sale snapshot in Redis is used this long.',
    unit: 'ms',
    fallback: 5000,
    min: 100,
    max: 600000,
  }),
  hotSalePerSecond: integer({
    env: 'HOT_SALE_PER_SECOND',
    doc: 'From so many attempts to buy a second on, over ten seconds and all apis together, a sale is hot: a metric of the keeper names it.',
    unit: 'purchases a second; 0: off',
    fallback: 2000,
    min: 0,
    max: 1000000,
  }),
  soldOutLifeMs: integer({
    env: 'GATE_SOLD_OUT_LIFE_MS',
    doc: 'A sold-out flag is used this long; released units are offered again within it.',
    unit: 'ms',
    fallback: 500,
    min: 10,
    max: 1000,
  }),
  soldOutBuyersMax: integer({
    env: 'GATE_SOLD_OUT_KEYS_MAX',
    doc: 'Buyers with accepted purchases kept in memory, all sold-out sales together, so that they are not refused from memory when they ask again.',
    unit: 'buyers',
    fallback: 500000,
    min: 0,
    max: 5000000,
  }),
} as const satisfies Keys;

export const batch = {
  sizeMax: integer({
    env: 'BATCH_SIZE_MAX',
    doc: 'Purchases in one half message. 1 switches group commit off.',
    unit: 'purchases',
    fallback: 192,
    min: 1,
    max: 512,
  }),
  inFlightMax: integer({
    env: 'BATCH_IN_FLIGHT_MAX',
    doc: 'Batches of one sale and bucket under way at once.',
    unit: 'batches',
    fallback: 3,
    min: 1,
    max: 128,
  }),
  gatherMs: integer({
    env: 'BATCH_GATHER_MS',
    doc: 'Of batches below a quarter of BATCH_SIZE_MAX, one leaves in this time, per process, sale and bucket; 0: any number.',
    unit: 'ms',
    fallback: 25,
    min: 0,
    max: 1000,
  }),
  queueMax: integer({
    env: 'BATCH_QUEUE_MAX',
    doc: 'Purchases waiting in one process; one more gets `overloaded`.',
    unit: 'purchases',
    fallback: 8192,
    min: 1,
    max: 1000000,
  }),
  waitMaxMs: integer({
    env: 'BATCH_WAIT_MAX_MS',
    doc: 'A purchase that waited longer gets `overloaded`; at least twice BATCH_GATHER_MS.',
    unit: 'ms',
    fallback: 2000,
    min: 10,
    max: 30000,
  }),
  roundsMax: integer({
    env: 'BATCH_ROUNDS_MAX',
    doc: 'Batches one purchase may go through before it gets `overloaded`.',
    unit: 'batches',
    fallback: 5,
    min: 1,
    max: 20,
  }),
} as const satisfies Keys;

const currencyText = text({
  env: 'SALE_CURRENCY',
  doc: 'Currency of a new sale that names none, as ISO 4217 has it.',
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

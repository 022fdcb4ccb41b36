import { readdirSync } from 'node:fs';
import importX from 'eslint-plugin-import-x';
import { createTypeScriptImportResolver } from 'eslint-import-resolver-typescript';
import tseslint from 'typescript-eslint';

/**
 * Who may import whom: each room of the product, with the rooms that it may use. The order is the way down: nothing
 * imports what stands above it.
 */
const FLOW = {
  cli: [
    'programs',
    'operate',
    'process',
    'http',
    'contract',
    'admission',
    'purchase',
    'orders',
    'sales',
    'recovery',
    'redis',
    'mysql',
    'rocketmq',
    'core',
  ],
  /** Seckill inside an app: it composes what the programs compose. */
  library: ['programs', 'process', 'http', 'contract', 'orders', 'payment', 'mysql', 'rocketmq', 'core'],
  programs: [
    'operate',
    'process',
    'http',
    'contract',
    'admission',
    'purchase',
    'orders',
    'sales',
    'recovery',
    'redis',
    'mysql',
    'rocketmq',
    'payment',
    'core',
  ],
  /** One folder per subject of operators. */
  operate: [
    'process',
    'http',
    'contract',
    'admission',
    'orders',
    'sales',
    'recovery',
    'redis',
    'mysql',
    'rocketmq',
    'payment',
    'core',
  ],
  /** What every process needs, a program or a command: connections, log and metrics, clock, options and output. */
  process: ['http', 'orders', 'sales', 'redis', 'mysql', 'rocketmq', 'core'],
  http: ['contract', 'admission', 'purchase', 'orders', 'sales', 'recovery', 'core'],
  /** The bodies of the API, written once. The pages and the client take their types from it. */
  contract: ['admission', 'sales', 'core'],
  recovery: ['orders', 'sales', 'core'],
  purchase: ['sales', 'core'],
  orders: ['core'],
  sales: ['core'],
  admission: ['core'],
  redis: ['core'],
  mysql: ['core'],
  rocketmq: ['core'],
  payment: ['core'],
  core: [],
};
const ROOMS = Object.keys(FLOW);
const folders = readdirSync(new URL('src', import.meta.url));
if ([...ROOMS].sort().join() !== folders.sort().join()) throw new Error('FLOW must name each folder of src.');

/** A subject has two doors: `index.ts` for programs, and `commands.ts` for the command line. */
const SUBJECTS = readdirSync(new URL('src/operate', import.meta.url));
const doors = (file) => SUBJECTS.map((subject) => `./${subject}/${file}`);

/** What the pages and the client may import: files that import nothing themselves, and types. */
const FOR_BROWSERS = ['./core/after.ts', './core/bucket.ts', './core/currency.ts', './core/duration.ts', './contract'];

const zones = [
  ...Object.entries(FLOW).map(([room, allowed]) => ({
    target: `./src/${room}`,
    from: ROOMS.filter((other) => other !== room && !allowed.includes(other)).map((other) => `./src/${other}`),
    message: `src/${room} may import only: ${allowed.join(', ') || 'nothing'}.`,
  })),
  ...SUBJECTS.map((subject) => ({
    target: `./src/operate/${subject}`,
    from: './src/operate',
    except: [`./${subject}`],
    message: 'No subject imports another one.',
  })),
  {
    target: './src/programs',
    from: './src/operate',
    except: doors('index.ts'),
    message: 'Import index.ts of a subject, its door for programs.',
  },
  {
    target: './src/cli',
    from: './src/operate',
    except: doors('commands.ts'),
    message: 'Import commands.ts of a subject, its door for the command line.',
  },
  {
    target: './src',
    from: ['./web', './deploy', './test', './bench'],
    message: 'src knows nothing of pages and tools.',
  },
  { target: './web', from: './src', except: FOR_BROWSERS, message: 'A browser hears of the product over HTTP.' },
  { target: './web/client', from: './web', except: ['./client'], message: 'The client knows nothing of the pages.' },
];

/** How a test stays green on a busy machine: it waits in granted time, and only test/time judges the clock on the wall. */
const WAITS = [
  {
    selector: 'CallExpression[callee.property.name="timeout"][callee.object.name!="AbortSignal"]',
    message: 'A test has no limit of its own: its waits end after granted time. Remove the time-out.',
  },
  {
    selector:
      'CallExpression[callee.name=/^(until|found)$/][arguments.length>2]:not([arguments.2.type=/^(ObjectExpression|Identifier)$/])',
    message: 'A wait has no limit: it ends when the condition holds, or after two minutes of granted time.',
  },
  {
    selector: 'AwaitExpression > CallExpression[callee.name="sleep"]',
    message: 'Wait with until() for what the test needs; pause() is for tests about time itself.',
  },
  {
    selector: 'AwaitExpression > NewExpression[callee.name="Promise"] CallExpression[callee.name="setTimeout"]',
    message: 'Wait with until() for what the test needs; pause() is for tests about time itself.',
  },
  {
    selector:
      'CallExpression[callee.property.name=/^(lessThan|below|most|lt|lte|within)$/] CallExpression[callee.name="expect"] > BinaryExpression[operator="-"] > CallExpression[callee.object.name=/^(Date|performance)$/]',
    message: 'A busy machine is late. Promised times are measured in test/time.',
  },
];

/**
 * Files that read the wall clock, each with the instant that it reads: one that is stored, shown, or compared with another
 * machine. A duration is measured by `monotonicMs()`, because somebody may set the wall clock while it lasts.
 */
const READS_WALL_CLOCK = {
  'admission/breaker/shared-breakers.ts': 'since when a breaker is open, for a person',
  'admission/queue/room.ts': 'when a sale opens, and times in passes and tickets, which other processes read',
  'admission/queue/waiting-rooms.ts': 'times in passes and tickets, which other processes read',
  'admission/revocations.ts':
    'when no token can be good any more that a revocation, made on the clock of MySQL, is for',
  'admission/sign/purchase-tokens.ts': 'the end of a token, which another process may have given',
  'admission/sign/request-signatures.ts': 'the time that a client has signed',
  'core/config/key.ts': 'whether a certificate has expired',
  'core/ports/clock.ts': 'the clock itself',
  'rocketmq/clients-with-workarounds.ts': 'the second in a signed header',
  'orders/clock-watch.ts': 'compared with the clocks of MySQL and Redis',
  'orders/handle-deliveries.ts': 'how old a batch is, which another machine has dated',
  'orders/order-id-minter.ts': 'the time in an order id',
  'orders/shadow.ts': 'whether a batch, which another machine has dated, is older than the shadow',
  'purchase/gate.ts': 'whether an announced sale is over, which Redis does not have',
  'purchase/place-batch.ts': 'the time of creation of a batch',
  'purchase/read-purchase.ts': 'how long ago a sale closed',
  'operate/broker/commands.ts': 'when a screen was read, for a person',
  'operate/broker/half-messages.ts': 'the age of messages, which brokers have dated',
  'operate/broker/rocketmq-inspection.ts': 'the age of messages, which brokers have dated',
  'operate/dead-letters/bulk-route.ts': 'the end of a token, which ends a stream',
  'operate/dead-letters/replay-dead-letter.ts': 'the deadline of an order',
  'operate/live/live-sales.ts': 'the second of the figures, which other processes have dated',
  'operate/live/live-snapshots.ts': 'the instant of a snapshot and of a condition, for a person',
  'operate/live/routes.ts': 'the last hour of a sale',
  'operate/sales/calendar-commands.ts': 'whether an imported sale ends in the future',
  'operate/sales/commands.ts': 'whether a new sale ends in the future',
  'operate/sales/routes.ts': 'whether a new sale ends in the future',
  'operate/sales/sale-fields.ts': 'a time that an operator gives from now',
  'operate/sales/services.ts': 'the clock of the plan and of changes of sales',
  'operate/doctor/read-broker-facts.ts': 'compared with the clock of a broker',
  'operate/reconcile/reconcile-admin.ts': 'how long ago a sale closed',
  'operate/revocations/commands.ts': 'the time before which tokens are revoked',
  'operate/revocations/routes.ts': 'the time before which tokens are revoked',
  'operate/webhooks/send.ts': 'the time of a signature',
  'operate/webhooks/services.ts': 'the time of a test event',
  'recovery/repair/await-quiet.ts': 'how long ago a sale closed',
  'redis/program-reports.ts': 'when a program was seen last, for other processes and a person',
  'redis/read-facts.ts': 'compared with the clock of Redis',
  'rocketmq/credentials.ts': 'the time that a call to the proxy has signed',
  'rocketmq/transport.ts': 'the deadline of a call, which gRPC takes as an instant',
  'sales/edit-sale.ts': 'whether a new end of a window is over',
  'sales/get-sale.ts': 'shown to clients, for a sale that Redis does not have',
  'sales/schedule/plan-sales.ts': 'how a planned sale stands, for a person',
};
const WALL_CLOCK = [
  "MemberExpression[object.name='Date'][property.name='now']:not(Property[key.name='deadline'] *)", // gRPC wants it so
  "NewExpression[callee.name='Date'][arguments.length=0]",
  "CallExpression[callee.property.name='nowMs']",
  "CallExpression[callee.name='nowMs']",
];

/** How a wait ends when it was meant to, also after more than 2^31 ms. Timers of a constant or of a bounded setting are fine. */
const TIMERS = [
  {
    selector: `CallExpression[callee.name='setTimeout']:matches([arguments.1.name=/^(ms|\\w+Ms)$/], [arguments.1.property.name='ms'], [arguments.1.type='CallExpression']):not([arguments.1.name=/^(timeout|every)Ms$/])`,
    message:
      'Nobody knows how long this is, and setTimeout rings at once after 2^31 ms: use after() of src/core/after.ts.',
  },
  {
    selector: "ImportDeclaration[source.value='node:timers/promises']",
    message: 'It ends at once after 2^31 ms: use pause() of src/core/after.ts.',
  },
];

/** A browser would load zod, and half of the server. */
const TYPES_ONLY = [
  {
    selector: 'ImportDeclaration[source.value=/src.contract/][importKind!="type"]',
    message: 'Import types only from src/contract.',
  },
];

/** Only what oxlint has no rule for (the rest is in .oxlintrc.json): where a file of the product stands in the flow. */
export default tseslint.config(
  {
    files: ['{src,web}/**/*.{ts,tsx}'],
    extends: [tseslint.configs.base, importX.flatConfigs.typescript],
    plugins: { 'import-x': importX },
    settings: {
      'import-x/resolver-next': [
        createTypeScriptImportResolver({
          project: ['./tsconfig.json', './web/tsconfig.json'],
          noWarnOnMultipleProjects: true,
        }),
      ],
    },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones }],
      'import-x/no-unresolved': 'error', // without its resolver the rule above would find nothing
    },
  },
  {
    files: ['{src,web}/**/*.{ts,tsx}'],
    ignores: ['src/core/after.ts'],
    rules: { 'no-restricted-syntax': ['error', ...TIMERS] },
  },
  {
    files: ['web/**/*.{ts,tsx}'],
    rules: {
      'no-restricted-syntax': ['error', ...TIMERS, ...TYPES_ONLY],
      'no-restricted-globals': ['error', 'Buffer', 'process'],
    },
  },
  {
    files: ['test/**/*.test.ts'],
    ignores: ['test/time/**'],
    extends: [tseslint.configs.base],
    rules: { 'no-restricted-syntax': ['error', ...WAITS] },
  },
  {
    files: ['web/client/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^[^.]', message: 'The client brings nothing along.' }] },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/core/config/**', 'src/cli/**', 'src/operate/*/*commands.ts', 'src/process/options.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only src/core/config reads the environment.' },
      ],
    },
  },
  {
    files: ['admission', 'core', 'operate', 'orders', 'purchase', 'recovery', 'redis', 'rocketmq', 'sales'].map(
      (room) => `src/${room}/**/*.ts`,
    ),
    ignores: ['src/core/after.ts', ...Object.keys(READS_WALL_CLOCK).map((file) => `src/${file}`)],
    rules: {
      'no-restricted-syntax': [
        'error',
        ...TIMERS,
        ...WALL_CLOCK.map((selector) => ({
          selector,
          message: 'Measure a duration by monotonicMs(). A file that needs an instant says so in READS_WALL_CLOCK.',
        })),
      ],
    },
  },
);

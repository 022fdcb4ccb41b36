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
    'http',
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
  library: ['programs', 'http', 'orders', 'payment', 'mysql', 'rocketmq', 'core'],
  programs: [
    'http',
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
  http: ['admission', 'purchase', 'orders', 'sales', 'recovery', 'core'],
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
  /** These run in a browser: what they know of the product they hear over HTTP. */
  web: ['client'],
  client: [],
};
const ROOMS = Object.keys(FLOW);

const zones = [
  ...Object.entries(FLOW).map(([room, allowed]) => ({
    target: `./src/${room}`,
    from: ROOMS.filter((other) => other !== room && !allowed.includes(other)).map((other) => `./src/${other}`),
    message: `src/${room} may import only: ${allowed.join(', ') || 'nothing'}.`,
  })),
  { target: './src', from: ['./deploy', './test', './bench'], message: 'The product knows nothing of its tools.' },
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

/** Only what oxlint has no rule for (the rest is in .oxlintrc.json). */
export default tseslint.config(
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.base, importX.flatConfigs.typescript],
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createTypeScriptImportResolver({ project: './tsconfig.json' })] },
    rules: { 'import-x/no-restricted-paths': ['error', { zones }] },
  },
  {
    files: ['test/**/*.test.ts'],
    ignores: ['test/time/**'],
    extends: [tseslint.configs.base],
    rules: { 'no-restricted-syntax': ['error', ...WAITS] },
  },
  {
    files: ['src/client/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        { patterns: [{ regex: '^[^.]', message: 'The client brings nothing along.' }] },
      ],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/core/config/**', 'src/cli/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only src/core/config reads the environment.' },
      ],
    },
  },
);

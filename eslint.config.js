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

/** Only what oxlint has no rule for (the rest is in .oxlintrc.json): where a file of the product stands in the flow. */
export default tseslint.config(
  {
    files: ['src/**/*.{ts,tsx}'],
    extends: [tseslint.configs.base, importX.flatConfigs.typescript],
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createTypeScriptImportResolver({ project: './tsconfig.json' })] },
    rules: { 'import-x/no-restricted-paths': ['error', { zones }] },
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

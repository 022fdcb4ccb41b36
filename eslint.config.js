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

export default tseslint.config(
  { ignores: ['dist/**', 'coverage/**', '.stack*/**', 'node_modules/**'] },
  ...tseslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [importX.flatConfigs.typescript],
    plugins: { 'import-x': importX },
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    settings: { 'import-x/resolver-next': [createTypeScriptImportResolver({ project: './tsconfig.json' })] },
    rules: {
      'import-x/no-restricted-paths': ['error', { zones }],
      'import-x/no-cycle': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      eqeqeq: 'error',
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
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: { '@typescript-eslint/no-unused-expressions': 'off' },
  },
);

import importX from 'eslint-plugin-import-x';
import { createTypeScriptImportResolver } from 'eslint-import-resolver-typescript';
import tseslint from 'typescript-eslint';

/** Who may import whom. A folder not listed for a target may not be imported by it. */
const FLOW = {
  domain: [],
  ports: ['domain'],
  config: ['domain'],
  observability: ['domain', 'ports', 'config'],
  stock: ['domain', 'ports'],
  sale: ['domain', 'ports', 'stock'],
  entry: ['domain', 'ports'],
  purchase: ['domain', 'ports', 'sale', 'stock'],
  order: ['domain', 'ports', 'stock'],
  payment: ['domain', 'ports'],
  keeper: ['domain', 'ports', 'order', 'stock'],
  reconcile: ['domain', 'ports', 'order'],
  repair: ['domain', 'ports', 'reconcile'],
  trace: ['domain', 'ports'],
  http: ['domain', 'ports', 'purchase', 'sale', 'order', 'reconcile', 'trace', 'entry'],
  redis: ['domain', 'ports'],
  rocketmq: ['domain', 'ports'],
  mysql: ['domain', 'ports'],
  stack: ['domain', 'config'],
  app: [
    'domain',
    'ports',
    'config',
    'observability',
    'sale',
    'entry',
    'stock',
    'purchase',
    'order',
    'keeper',
    'reconcile',
    'repair',
    'trace',
    'http',
    'redis',
    'rocketmq',
    'mysql',
    'payment',
  ],
  chaos: ['domain', 'ports', 'config', 'stack', 'reconcile', 'redis', 'mysql', 'rocketmq', 'observability', 'sale'],
};
/** Single files of rooms that are closed otherwise. */
const DOORS = { chaos: { http: ['./token.ts'], app: ['./system-clock.ts'] } };
const ROOMS = [...Object.keys(FLOW), 'cli'];

const zones = Object.entries(FLOW).flatMap(([target, allowed]) => {
  const message = `src/${target} may import only: ${allowed.join(', ') || 'nothing'}.`;
  const doors = DOORS[target] ?? {};
  const closed = ROOMS.filter((room) => room !== target && !allowed.includes(room));
  const [ajar, shut] = [closed.filter((room) => room in doors), closed.filter((room) => !(room in doors))];
  return [
    { target: `./src/${target}`, from: shut.map((room) => `./src/${room}`), message },
    ...ajar.map((room) => ({ target: `./src/${target}`, from: `./src/${room}`, except: doors[room], message })),
  ];
});

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
      'max-lines-per-function': ['error', { max: 60, skipComments: true, skipBlankLines: true }],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/config/**', 'src/cli/**', 'src/stack/**'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Only src/config reads the environment.' },
      ],
    },
  },
  { files: ['**/*.cjs'], rules: { '@typescript-eslint/no-require-imports': 'off' } },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: { 'max-lines-per-function': 'off', '@typescript-eslint/no-unused-expressions': 'off' },
  },
);

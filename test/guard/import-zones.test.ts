import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { ESLint } from 'eslint';

const REPO = fileURLToPath(new URL('../../', import.meta.url));

/** Without their resolver the import rules find nothing and stay green: each must be seen to bite. */
describe('guard: eslint holds the direction of imports', () => {
  const eslint = new ESLint({ cwd: REPO });

  /** The rules that a text breaks at this place; the file on disk is not touched. */
  const rulesBroken = async (path: string, text: string): Promise<(string | null)[]> => {
    expect(existsSync(join(REPO, path)), `${path} exists`).to.equal(true);
    const [result] = await eslint.lintText(`${text}\n`, { filePath: join(REPO, path) });
    const fatal = result?.messages.find((message) => message.fatal);
    if (fatal) throw new Error(`${path}: ${fatal.message}`);
    return (result?.messages ?? []).filter(({ severity }) => severity === 2).map(({ ruleId }) => ruleId);
  };

  for (const [path, text] of [
    ['src/core/errors.ts', "import '../redis/keys.js';"],
    ['src/purchase/gate.ts', "import type { BucketKeys } from '../redis/keys.js';\nexport type K = BucketKeys;"],
    ['src/redis/keys.ts', "import '../rocketmq/purchase-channel.js';"],
    ['src/programs/api.ts', "import '../../deploy/local/main.js';"],
  ] as const) {
    it(`refuses an import against the direction in ${path}, and allows one with it`, async () => {
      expect(await rulesBroken(path, text)).to.include('import-x/no-restricted-paths');
      const allowed = "import '../core/ids.js';";
      expect(await rulesBroken(path, allowed)).not.to.include('import-x/no-restricted-paths');
    });
  }

  it('lets only src/core/config and src/cli read the environment', async () => {
    const text = 'export const url = process.env.REDIS_URL;';
    expect(await rulesBroken('src/redis/keys.ts', text)).to.include('no-restricted-properties');
    expect(await rulesBroken('src/core/config/load.ts', text)).not.to.include('no-restricted-properties');
  });

  for (const text of [
    'this.timeout(5_000);',
    "it('does it', work).timeout(5_000);",
    "await until('it is there', check, 5_000);",
    "await found('it', read, LIMIT_MS * 2);",
    'await sleep(5);',
    'await new Promise((resolve) => setTimeout(resolve, 5));',
    'expect(performance.now() - startedMs).to.be.below(1000);',
    "expect(Date.now() - startedMs, 'ms').to.be.within(900, 1000);",
  ]) {
    it(`refuses in a test: ${text}`, async () => {
      expect(await rulesBroken('test/unit/stack/ports.test.ts', text)).to.deep.equal(['no-restricted-syntax']);
    });
  }
});

/** One bad file for each rule that needs types or more than one file: they find nothing when their setting is lost. */
const BAD_FILES = {
  'cycle-a.ts': "import { b } from './cycle-b.js';\nexport const a = (): number => b() + 1;",
  'cycle-b.ts': "import { a } from './cycle-a.js';\nexport const b = (): number => a() + 1;",
  'floating.ts': 'const work = async (): Promise<void> => {};\nexport const start = (): void => {\n  work();\n};',
  'condition.ts': 'export const one = (ask: () => Promise<boolean>): number => (ask() ? 1 : 2);',
  'switch.ts': "export function one(word: 'a' | 'b'): void {\n  switch (word) {\n    case 'a':\n  }\n}",
  'type-import.ts': "import { Stats } from 'node:fs';\nexport const size = (stats: Stats): number => stats.size;",
};
const RULES_BROKEN = {
  'cycle-a.ts': ['import(no-cycle)'],
  'cycle-b.ts': ['import(no-cycle)'],
  'floating.ts': ['typescript(no-floating-promises)'],
  'condition.ts': ['typescript(no-misused-promises)'],
  'switch.ts': ['typescript(switch-exhaustiveness-check)'],
  'type-import.ts': ['typescript(consistent-type-imports)'],
};

describe('guard: oxlint, with our settings', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seckill-lint-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('refuses cycles, dropped promises, promises as conditions and switches with a gap', async () => {
    for (const [name, text] of Object.entries(BAD_FILES)) writeFileSync(join(folder, name), `${text}\n`);
    const paths = { typeRoots: [join(REPO, 'node_modules/@types')] };
    const compilerOptions = { strict: true, module: 'NodeNext', types: ['node'], ...paths };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
    const oxlint = join(REPO, 'node_modules/.bin/oxlint');
    const args = ['--config', join(REPO, '.oxlintrc.json'), '--format', 'json', '.'];
    const { stdout } = await promisify(execFile)(oxlint, args, { cwd: folder }).catch(
      (error: unknown) => error as { stdout: string }, // exit code 1: it found something
    );
    const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code: string; filename: string }[] };
    const found: Record<string, string[]> = {};
    for (const { filename, code } of diagnostics) (found[filename] ??= []).push(code);
    expect(found).to.deep.equal(RULES_BROKEN);
  });
});

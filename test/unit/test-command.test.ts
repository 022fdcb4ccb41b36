import { expect } from 'chai';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dependents } from '../runner/changed.js';
import { ALL_COMMANDS, claimsOf, COMMANDS, FOLDER_NAMES, testFiles } from '../runner/commands.js';
import { noteShaky } from '../runner/shaky.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

describe('npm test', () => {
  it('gives each test file to exactly one command', () => {
    const wrong = testFiles().filter((file) => claimsOf(file).length !== 1);
    expect(wrong).to.deep.equal([]);
    const leftOut = testFiles().filter((file) => claimsOf(file).some((name) => !ALL_COMMANDS.includes(name)));
    expect(leftOut, 'not run by `npm run test:all`').to.deep.equal(['test/schemathesis/schemathesis.test.ts']);
  });

  it('names only folders and files that exist', () => {
    const files = testFiles();
    const named = Object.values(COMMANDS).flatMap(({ has }) => [...has]);
    const missing = named.filter((part) => !files.some((file) => file.startsWith(`test/${part}`)));
    expect(missing).to.deep.equal([]);
  });

  it('knows every folder with test files', () => {
    const withTests = readdirSync(join(REPO_DIR, 'test'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => name.split('/')[0]);
    expect([...new Set(withTests)]).to.have.members([...FOLDER_NAMES]);
  });

  it('fails a file that is shaky twice in ten runs', () => {
    const path = join(mkdtempSync(join(tmpdir(), 'seckill-shaky-')), 'history.json');
    expect(noteShaky(['a', 'b'], path)).to.deep.equal([]);
    for (let run = 2; run < 10; run++) expect(noteShaky([], path)).to.deep.equal([]);
    expect(noteShaky(['a'], path), 'the tenth run').to.deep.equal(['a']);
    expect(noteShaky(['b'], path), 'ten runs later').to.deep.equal([]);
  });
});

describe('npm test --changed', () => {
  const files = {
    'src/a.ts': 'export const a = 1;',
    'src/b.ts': "import { a } from './a.js';\nexport type B = typeof a;",
    'src/main.ts': "await import('./b.js');",
    'src/alone.ts': 'export {};',
    'sql/one.sql': 'SELECT 1;',
    'test/b.test.ts': "import type { B } from '../src/b.js';\nexport type C = B;",
    'test/program.test.ts': "const MAIN = join(REPO, 'dist/main.js');",
    'test/child.test.ts': "const CHILD = new URL('../src/b.ts', import.meta.url);",
    'test/sql.test.ts': "const SQL = new URL('../sql/', import.meta.url);",
    'deploy/local/start.ts': 'export {};',
    'test/start.test.ts': "const START = join(REPO, 'dist/local/start.js');",
    'test/table.test.ts': "const TABLE = new URL('table/', PACKAGE_ROOT);",
    'table/one.json': '{}',
  };
  let root: string;
  before(() => {
    root = mkdtempSync(join(tmpdir(), 'seckill-graph-'));
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const testsOf = (...changed: string[]): string[] =>
    [...dependents(changed, Object.keys(files), root).keys()].filter((file) => file.endsWith('.test.ts')).sort();

  it('finds tests that import a file, even only for types, or start a program that uses it', () => {
    const everything = ['test/b.test.ts', 'test/child.test.ts', 'test/program.test.ts'];
    expect(testsOf('src/a.ts')).to.deep.equal(everything);
    expect(testsOf('src/main.ts')).to.deep.equal(['test/program.test.ts']);
  });

  it('finds tests that read a file or its folder', () => {
    expect(testsOf('sql/one.sql')).to.deep.equal(['test/sql.test.ts']);
    expect(testsOf('table/one.json')).to.deep.equal(['test/table.test.ts']);
  });

  it('finds tests that start the launcher', () => {
    expect(testsOf('deploy/local/start.ts')).to.deep.equal(['test/start.test.ts']);
  });

  it('finds a changed test itself, and no test if no test uses the file', () => {
    expect(testsOf('test/sql.test.ts')).to.deep.equal(['test/sql.test.ts']);
    expect(testsOf('src/alone.ts', 'README.md')).to.deep.equal([]);
  });
});

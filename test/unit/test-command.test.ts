import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dependents } from '../runner/changed.js';

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

  it('finds tests that import a file, for its types as well, start it, or start what imports it', () => {
    const everything = ['test/b.test.ts', 'test/child.test.ts', 'test/program.test.ts'];
    expect(testsOf('src/a.ts')).to.deep.equal(everything);
    expect(testsOf('src/main.ts')).to.deep.equal(['test/program.test.ts']);
  });

  it('finds tests that read a file, or the folder it is in', () => {
    expect(testsOf('sql/one.sql')).to.deep.equal(['test/sql.test.ts']);
  });

  it('finds a changed test itself, and no test for a file that none uses', () => {
    expect(testsOf('test/sql.test.ts')).to.deep.equal(['test/sql.test.ts']);
    expect(testsOf('src/alone.ts', 'README.md')).to.deep.equal([]);
  });
});

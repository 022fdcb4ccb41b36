import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { dependents } from '../runner/changed.js';
import { FOLDERS, readOptions } from '../runner/options.js';
import { Outputs } from '../runner/output.js';

describe('npm test', () => {
  it('--help names every folder and runs nothing', () => {
    let said = '';
    expect(() => readOptions(['--help'], (text) => (said += text)))
      .to.throw()
      .with.property('exitCode', 0);
    for (const folder of FOLDERS) expect(said).to.include(`"${folder}"`);
  });

  for (const wrong of ['scenarios', '--grepp']) {
    it(`refuses ${wrong}, which would have run everything or nothing`, () => {
      let said = '';
      expect(() => readOptions([wrong], (text) => (said += text)))
        .to.throw()
        .with.property('exitCode', 1);
      expect(said).to.include(wrong);
    });
  }

  it('takes folders, titles and what changes are counted from', () => {
    const nothing = { folders: FOLDERS, mochaArgs: [], changedSince: null };
    expect(readOptions([])).to.deep.equal(nothing);
    expect(readOptions(['--changed'])).to.deep.equal({ ...nothing, changedSince: 'main' });
    expect(readOptions(['lua', 'unit', '--changed=HEAD~2', '-g', 'T3', '--bail'])).to.deep.equal({
      folders: ['unit', 'lua'],
      mochaArgs: ['--grep', 'T3', '--bail'],
      changedSince: 'HEAD~2',
    });
  });
});

describe('npm test: folders that run beside each other', () => {
  it('are shown one after the other: the first at once, the others when those before them have ended', () => {
    let shown = '';
    const outputs = new Outputs((text) => (shown += text));
    const [unit, lua, guard] = [outputs.open(), outputs.open(), outputs.open()];
    unit.write('u1 ');
    lua.write('l1 ');
    guard.write('g1 ');
    expect(shown).to.equal('u1 ');
    guard.end();
    unit.write('u2 ');
    unit.end();
    expect(shown, 'what has ended comes before what goes on').to.equal('u1 u2 g1 l1 ');
    lua.write('l2 ');
    expect(shown).to.equal('u1 u2 g1 l1 l2 ');
    lua.end();
    outputs.open().write('s1');
    expect(shown).to.equal('u1 u2 g1 l1 l2 s1');
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

  it('finds who imports a file, for its types as well, starts it, or starts what imports it', () => {
    const everything = ['test/b.test.ts', 'test/child.test.ts', 'test/program.test.ts'];
    expect(testsOf('src/a.ts')).to.deep.equal(everything);
    expect(testsOf('src/main.ts')).to.deep.equal(['test/program.test.ts']);
  });

  it('finds who reads a file, or the folder it is in', () => {
    expect(testsOf('sql/one.sql')).to.deep.equal(['test/sql.test.ts']);
  });

  it('finds the test itself, and nobody for what nobody uses', () => {
    expect(testsOf('test/sql.test.ts')).to.deep.equal(['test/sql.test.ts']);
    expect(testsOf('src/alone.ts', 'README.md')).to.deep.equal([]);
  });

  it('keeps the way from a test to the change', () => {
    const because = dependents(['src/a.ts'], Object.keys(files), root);
    expect([because.get('test/b.test.ts'), because.get('src/b.ts'), because.get('src/a.ts')]).to.deep.equal([
      'src/b.ts',
      'src/a.ts',
      null,
    ]);
  });
});

import { expect } from 'chai';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundlePrograms } from '../../build.mjs';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

describe('source maps of the programs', function () {
  const dist = mkdtempSync(join(tmpdir(), 'seckill-maps-'));
  before(() => bundlePrograms({ dist }));
  after(() => rmSync(dist, { recursive: true }));

  /** Where a stack trace says that a text of the bundle is. */
  const originOf = (text: string): { source: string; line: number } | null => {
    for (const name of readdirSync(join(dist, 'cli')).filter((file) => file.endsWith('.js'))) {
      const path = join(dist, 'cli', name);
      const line = readFileSync(path, 'utf8')
        .split('\n')
        .findIndex((one) => one.includes(text));
      if (line === -1) continue;
      const map = new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload);
      const entry = map.findEntry(line, 10);
      return 'originalSource' in entry && entry.originalSource
        ? { source: entry.originalSource, line: entry.originalLine }
        : null;
    }
    throw new Error(`no bundle contains ${text}`);
  };

  it('name the file and the line of our own code', () => {
    const text = "new Error('must write a literal % as %25')";
    const { source, line } = originOf(text.replaceAll("'", '"')) ?? { source: '', line: 0 };
    expect(source).to.match(/src\/core\/config\/key\.ts$/);
    expect(readFileSync(join(REPO_DIR, 'src/core/config/key.ts'), 'utf8').split('\n')[line]).to.contain(text);
  });

  it('leave out packages, because Node would parse their maps while buyers wait', () => {
    expect(originOf('function callErrorFromStatus(')).to.equal(null);
  });
});

import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import * as client from './client-types.js';
import * as settings from './library-settings.js';

const fileOf = (path: string): string => readFileSync(join(REPO_DIR, path), 'utf8');

describe('guard: types that are made from something else', () => {
  it('of the client are those of the OpenAPI document', async () => {
    const isCurrent = fileOf('src/client/api-types.ts') === (await client.renderClientTypes());
    expect(isCurrent, `src/client/api-types.ts is out of date, run: ${client.RENDER_COMMAND}`).to.equal(true);
  });

  it('of the settings of the library are those of the configuration', () => {
    const isCurrent = fileOf('src/library/settings.ts') === settings.renderLibrarySettings();
    expect(isCurrent, `src/library/settings.ts is out of date, run: ${settings.RENDER_COMMAND}`).to.equal(true);
  });
});

/** Minified, and not compressed. */
const CLIENT_BYTES_MAX = 10_000;

describe('guard: the client for browsers', () => {
  it(`is smaller than ${CLIENT_BYTES_MAX} bytes, whole, and asks for nothing else`, async () => {
    const result = await build({
      root: REPO_DIR,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        minify: true,
        target: 'es2022',
        modulePreload: false,
        rolldownOptions: { input: join(REPO_DIR, 'src/client/index.ts'), preserveEntrySignatures: 'strict' },
      },
    });
    const [made] = [result].flat();
    if (made === undefined || !('output' in made)) throw new Error('nothing was built');
    const [chunk, ...others] = made.output;
    expect(others).to.deep.equal([]);
    expect(chunk.imports.concat(chunk.dynamicImports)).to.deep.equal([]);
    expect(chunk.code).not.to.match(/process\.|node:|Buffer/);
    expect(chunk.code.length).to.be.within(1_000, CLIENT_BYTES_MAX);
  });
});

import { expect } from 'chai';
import { join } from 'node:path';
import { build } from 'vite';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

/** Size of the minified, uncompressed client. */
const CLIENT_BYTES_MAX = 10_800;

describe('guard: the client for browsers', () => {
  it(`is complete, loads nothing else and is smaller than ${CLIENT_BYTES_MAX} bytes`, async () => {
    const result = await build({
      root: REPO_DIR,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        minify: true,
        target: 'es2022',
        modulePreload: false,
        rolldownOptions: { input: join(REPO_DIR, 'web/client/index.ts'), preserveEntrySignatures: 'strict' },
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

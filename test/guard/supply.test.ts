import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { productionPackages } from '../../deploy/supply/licences.mjs';

describe('guard: production packages', () => {
  const lock = (file: string): object => JSON.parse(readFileSync(join(REPO_DIR, file), 'utf8')) as object;

  it('have an approved licence and a checksum', () => {
    const packages = productionPackages(lock('package-lock.json'));
    expect(packages.map(({ name }) => name)).to.include.members(['express', 'ioredis', 'ipaddr.js']);
    expect(packages.filter(({ isAgreed, isVerified }) => !isAgreed || !isVerified)).to.deep.equal([]);
  });

  it('need one approved licence, unless they are used for development only', () => {
    const packages = {
      '': {},
      'node_modules/a': { version: '1', license: 'GPL-3.0', integrity: 'x' },
      'node_modules/a/node_modules/@b/c': { version: '2', license: '(MIT OR GPL-3.0)', integrity: 'x' },
      'node_modules/d': { version: '3' },
      'node_modules/e': { version: '4', license: 'GPL-3.0', dev: true },
    };
    const found = productionPackages({ packages }).map(({ name, isAgreed, isVerified }) => [
      name,
      isAgreed,
      isVerified,
    ]);
    expect(found).to.deep.equal([
      ['@b/c', true, true],
      ['a', false, true],
      ['d', false, false],
    ]);
  });
});

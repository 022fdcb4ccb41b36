import { expect } from 'chai';
import { allKeys, keysOf, PROGRAM_SECTIONS, SCHEMA } from '../../src/core/config/schema.js';

const keys = allKeys();

describe('guard: configuration', () => {
  it('describes every variable of a program once, in whole sentences', () => {
    for (const sections of Object.values(PROGRAM_SECTIONS)) {
      const names = keysOf(sections).map(({ env }) => env);
      expect(new Set(names).size).to.equal(names.length);
    }
    for (const { env, doc, range } of keys) {
      expect(env).to.match(/^[A-Z][A-Z0-9_]*$/);
      expect(doc, env).to.match(/^\w.*\.$/);
      expect(range, env).not.to.equal('');
    }
  });

  it('accepts every default', () => {
    for (const { env, fallback, parse } of keys) {
      if (fallback !== undefined) expect(parse(String(fallback)), env).to.equal(fallback);
    }
  });

  it('has no default for a secret', () => {
    for (const { env, secret, fallback } of keys) if (secret) expect(fallback, env).to.equal(undefined);
  });

  it('has no section that is never read by a program', () => {
    expect(new Set(Object.values(PROGRAM_SECTIONS).flat())).to.deep.equal(new Set(Object.keys(SCHEMA)));
  });
});

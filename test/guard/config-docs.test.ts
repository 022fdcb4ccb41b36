import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { RENDER_COMMAND, renderConfigDocs } from './config-docs.js';
import type { Key } from '../../src/core/config/key.js';
import { PROGRAM_SECTIONS, SCHEMA } from '../../src/core/config/schema.js';

const page = (): string => readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
const keys = Object.values(SCHEMA).flatMap((section) => Object.values(section) as Key<unknown>[]);

describe('guard: the configuration is documented', () => {
  it('docs/configuration.md is what src/core/config/schema.ts generates', () => {
    expect(page() === renderConfigDocs(), `docs/configuration.md is out of date, run: ${RENDER_COMMAND}`).to.equal(
      true,
    );
  });

  it('every key stands in it, with its sentence', () => {
    for (const { env, doc } of keys) expect(page()).to.include(`\`${env}\``).and.to.include(doc.replaceAll('|', '\\|'));
  });

  it('no variable feeds two keys of a program, every sentence ends, every number has its place', () => {
    for (const sections of Object.values(PROGRAM_SECTIONS)) {
      const names = sections.flatMap((name) => Object.values(SCHEMA[name]) as Key<unknown>[]).map(({ env }) => env);
      expect(new Set(names).size).to.equal(names.length);
    }
    for (const { env, doc, range } of keys) {
      expect(env).to.match(/^[A-Z][A-Z0-9_]*$/);
      expect(doc, env).to.match(/^\w.*\.$/);
      expect(range, env).not.to.equal('');
    }
  });

  it('a default is a value that the key itself accepts', () => {
    for (const { env, fallback, parse } of keys) {
      if (fallback !== undefined) expect(parse(String(fallback)), env).to.equal(fallback);
    }
  });

  it('secrets have no default', () => {
    for (const { env, secret, fallback } of keys) if (secret) expect(fallback, env).to.equal(undefined);
  });

  it('every section is read by a program', () => {
    expect(new Set(Object.values(PROGRAM_SECTIONS).flat())).to.deep.equal(new Set(Object.keys(SCHEMA)));
  });
});

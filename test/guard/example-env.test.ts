import { expect } from 'chai';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { fileVariable } from '../../src/core/config/key.js';
import { loadConfig } from '../../src/core/config/load.js';
import { PROGRAM_SECTIONS, SCHEMA, settingsOf, type SectionName } from '../../src/core/config/schema.js';
import { useTempFolder } from '../unit/stack/temp-folder.js';

const TEXT = readFileSync(join(REPO_DIR, 'deploy/example.env'), 'utf8');
const SETTINGS = settingsOf(Object.keys(SCHEMA) as SectionName[]);
const SECRET = 'a1b2c3d4e5f6'.repeat(4);

/** Returns the active settings, or all settings including those commented out with `#`. */
const namesIn = (pattern: RegExp): string[] => [...TEXT.matchAll(pattern)].map(([, name]) => name as string);
const IN_FORCE = /^([A-Z][A-Z0-9_]*)=/gm;
const ALL = /^#?([A-Z][A-Z0-9_]*)=/gm;

describe('guard: deploy/example.env', () => {
  const folder = useTempFolder();

  it('starts every program, with each secret in a file', () => {
    mkdirSync(join(folder(), 'secrets'));
    const pairs = [...TEXT.matchAll(/^([A-Z][A-Z0-9_]*)=(.*)$/gm)].map(([, name, value]) => {
      if (!name?.endsWith('_FILE')) return [name, value];
      const path = join(folder(), 'secrets', basename(value as string));
      writeFileSync(path, path.endsWith('-keys') ? `k1:${SECRET}\n` : `${SECRET}\n`);
      return [name, path];
    });
    const env = Object.fromEntries(pairs) as Record<string, string>;
    for (const sections of Object.values(PROGRAM_SECTIONS) as (readonly SectionName[])[]) loadConfig(sections, env);
    const secrets = SETTINGS.filter(({ secret }) => secret).map((key) => key.env);
    expect(Object.keys(env).filter((name) => secrets.includes(name))).to.deep.equal(['MYSQL_URL', 'REDIS_URL']);
  });

  it('names only existing settings, each once', () => {
    const known = SETTINGS.flatMap((key) => (key.fromFile ? [key.env, fileVariable(key.env)] : [key.env]));
    const named = namesIn(ALL);
    expect(named.filter((name) => !known.includes(name))).to.deep.equal([]);
    expect(named).to.have.length(new Set(named).size);
  });

  it('sets every setting without a default, and names every setting that only an operator can know', () => {
    const has = (pattern: RegExp, name: string): boolean =>
      namesIn(pattern).some((one) => one === name || one === fileVariable(name));
    const missing = SETTINGS.filter(({ fallback }) => fallback === undefined).filter(
      ({ env, optional }) => !has(optional ? ALL : IN_FORCE, env),
    );
    expect(missing.map(({ env }) => env)).to.deep.equal([]);
  });
});

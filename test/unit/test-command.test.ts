import { expect } from 'chai';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { claimsOf, COMMANDS, FOLDER_NAMES, testFiles } from '../runner/commands.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

describe('npm test', () => {
  it('gives each test file to exactly one command', () => {
    const wrong = testFiles().filter((file) => claimsOf(file).length !== 1);
    expect(wrong).to.deep.equal([]);
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
});

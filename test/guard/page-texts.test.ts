import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { en as consoleTexts } from '../../web/console/i18n/en.js';
import { en as buyerTexts } from '../../web/buyer/words/en.js';

/** The texts themselves are no place where one is shown. */
const DICTIONARIES = /\/(?:en|zh)\.ts$/;
/** A part that is passed on, or asked for a text whose name is not written there. */
const TAKEN = '(?!\\??\\.\\w)';

describe('guard: texts of the pages', () => {
  it('console: each is shown somewhere', () => {
    const sources = sourceOf('web/console');
    const answers = sourceOf('src') + sources; // their words pick a text by its name
    const isShown = (part: string, text: string): boolean =>
      found(sources, `\\b${part}\\.${text}\\b`) ||
      (part !== 't' && found(sources, `\\b${part}\\b${TAKEN}`) && found(answers, `\\b${text}\\b`));
    const hidden = leavesOf(consoleTexts, 't').filter(([part, text]) => !isShown(part, text));
    expect(hidden.map((leaf) => leaf.join('.'))).to.deep.equal([]);
  });

  it('buyer: each is named somewhere', () => {
    const sources = sourceOf('web/buyer'); // which take parts of the texts by their bare names
    const isNamed = (name: string): boolean => found(sources, `[.'{,]\\s*${name}\\b`);
    const hidden = leavesOf(buyerTexts, 'words').filter((leaf) => !leaf.join('.').split('.').slice(1).every(isNamed));
    expect(hidden.map((leaf) => leaf.join('.'))).to.deep.equal([]);
  });
});

const found = (sources: string, pattern: string): boolean => new RegExp(pattern).test(sources);

/** Each text, with the part that it is in. */
function leavesOf(texts: object, part: string): (readonly [string, string])[] {
  return Object.entries(texts).flatMap(([name, text]) =>
    typeof text === 'object' ? leavesOf(text as object, `${part}.${name}`) : [[part, name] as const],
  );
}

/** Without comments. */
function sourceOf(folder: string): string {
  return readdirSync(join(REPO_DIR, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !DICTIONARIES.test(path))
    .map((path) => readFileSync(join(REPO_DIR, folder, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, ''))
    .join('\n');
}

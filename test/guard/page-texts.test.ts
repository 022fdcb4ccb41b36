import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { en as consoleTexts } from '../../web/console/i18n/en.js';
import { en as buyerTexts } from '../../web/buyer/words/en.js';

/** The files that define the texts do not count as uses. */
const DICTIONARIES = /\/(?:en|zh)\.ts$/;
/** Follows a part that is passed on as a whole or indexed by a computed name. */
const TAKEN = '(?!\\??\\.\\w)';

describe('guard: texts of the pages', () => {
  it('uses each console text somewhere', () => {
    const sources = sourceOf('web/console');
    const answers = sourceOf('src') + sources; // a word in the source may select a text by its name
    const isShown = (part: string, text: string): boolean =>
      found(sources, `\\b${part}\\.${text}\\b`) ||
      (part !== 't' && found(sources, `\\b${part}\\b${TAKEN}`) && found(answers, `\\b${text}\\b`));
    const ofForms = 't.rules.names'; // another test compares the texts of the form with its fields
    const hidden = leavesOf(consoleTexts, 't').filter(([part, text]) => part !== ofForms && !isShown(part, text));
    expect(hidden.map((leaf) => leaf.join('.'))).to.deep.equal([]);
  });

  it('uses each buyer text somewhere', () => {
    const sources = sourceOf('web/buyer'); // the buyer page uses parts of the texts by their bare names
    const isNamed = (name: string): boolean => found(sources, `[.'{,]\\s*${name}\\b`);
    const hidden = leavesOf(buyerTexts, 'words').filter((leaf) => !leaf.join('.').split('.').slice(1).every(isNamed));
    expect(hidden.map((leaf) => leaf.join('.'))).to.deep.equal([]);
  });
});

const found = (sources: string, pattern: string): boolean => new RegExp(pattern).test(sources);

/** Returns each text together with its part. */
function leavesOf(texts: object, part: string): (readonly [string, string])[] {
  return Object.entries(texts).flatMap(([name, text]) =>
    typeof text === 'object' ? leavesOf(text as object, `${part}.${name}`) : [[part, name] as const],
  );
}

/** Returns the source without comments. */
function sourceOf(folder: string): string {
  return readdirSync(join(REPO_DIR, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path) && !DICTIONARIES.test(path))
    .map((path) => readFileSync(join(REPO_DIR, folder, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, ''))
    .join('\n');
}

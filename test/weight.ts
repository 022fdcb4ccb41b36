import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../deploy/local/stack/paths.js';
import { SCHEMA, settingsOf, type SectionName } from '../src/core/config/schema.js';

// Prints the weight of the tree, and fails if a row exceeds its ceiling. A lighter tree gets a lower ceiling. A commit
// that raises a ceiling says why.

const CEILINGS: Readonly<Record<string, number>> = {
  'lines of TypeScript': 199_750,
  'lines in src': 65_720,
  'lines in web': 17_920,
  'lines in test': 106_500,
  'lines in deploy': 6_180,
  'lines in bench': 3_450,
  'words in docs': 38_810,
  'words in docs/decisions': 12_000,
  'pages in docs': 25,
  settings: 99,
  'uses of Pick<': 100,
  'interfaces named *Ports, *Parts, *Options, *Services': 130,
};

const files = execFileSync('git', ['ls-files'], { cwd: REPO_DIR, encoding: 'utf8' }).split('\n');
const textOf = (keep: (file: string) => boolean): string =>
  files
    .filter(keep)
    .map((file) => readFileSync(join(REPO_DIR, file), 'utf8'))
    .join('');
const isTypeScript = (file: string): boolean => /\.tsx?$/.test(file);
const isPage = (file: string): boolean => /^docs\/[^/]+\.md$/.test(file);
const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
const linesIn = (folder: string): number =>
  count(
    textOf((file) => isTypeScript(file) && file.startsWith(folder)),
    /\n/g,
  );
const wordsIn = (keep: (file: string) => boolean): number => count(textOf(keep), /\S+/g);
const product = textOf((file) => isTypeScript(file) && /^(src|web)\//.test(file));

const weights: Readonly<Record<string, number>> = {
  'lines of TypeScript': linesIn(''),
  ...Object.fromEntries(
    ['src', 'web', 'test', 'deploy', 'bench'].map((folder) => [`lines in ${folder}`, linesIn(`${folder}/`)]),
  ),
  'words in docs': wordsIn(isPage),
  'words in docs/decisions': wordsIn((file) => file.startsWith('docs/decisions/') && file.endsWith('.md')),
  'pages in docs': files.filter(isPage).length,
  settings: settingsOf(Object.keys(SCHEMA) as SectionName[]).length,
  'uses of Pick<': count(product, /\bPick</g),
  'interfaces named *Ports, *Parts, *Options, *Services': count(
    product,
    /\binterface \w+(Ports|Parts|Options|Services)\b/g,
  ),
};

let isTooHeavy = false;
console.log(`${'weight'.padEnd(54)}${'now'.padStart(8)}${'ceiling'.padStart(9)}`);
for (const [name, ceiling] of Object.entries(CEILINGS)) {
  const weight = weights[name] as number;
  const isOver = weight > ceiling;
  isTooHeavy ||= isOver;
  console.log(
    `${name.padEnd(54)}${weight.toString().padStart(8)}${ceiling.toString().padStart(9)}${isOver ? '  TOO HEAVY' : ''}`,
  );
}
if (isTooHeavy) console.log('Make the tree lighter, or raise the ceiling in test/weight.ts and say why in the commit.');
process.exitCode = isTooHeavy ? 1 : 0;

import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

const PAGE = 'docs/architecture.md';
const FOLDERS = ['src', 'lua', 'test', 'deploy', 'docs'];
const TEXT = /\.(ts|mjs|cjs|lua|md|conf|yml)$/;
/** `rule 7`, `rules 1 and 2`, `rules 6, 7 and 13`, `rules 1 to 4`. */
const MENTION = /\brules? (\d+(?:(?:, | and | to )\d+)*)/gi;

const read = (name: string): string => readFileSync(join(REPO_DIR, name), 'utf8');

function rulesOfThePage(): number[] {
  const [, chapter = ''] = /^## Protocol rules$([^]*?)^## /m.exec(read(PAGE)) ?? [];
  return [...chapter.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number));
}

describe('guard: the protocol rules', () => {
  it('are numbered from 1 without a gap', () => {
    const rules = rulesOfThePage();
    expect(rules.length).to.be.above(0);
    expect(rules).to.deep.equal(rules.map((_, index) => index + 1));
  });

  it('exist wherever a comment or a page names one', () => {
    const rules = rulesOfThePage();
    const files = FOLDERS.flatMap((folder) =>
      readdirSync(join(REPO_DIR, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => TEXT.test(name))
        .map((name) => join(folder, name)),
    );
    const mentions = files.flatMap((file) =>
      [...read(file).matchAll(MENTION)].flatMap(([text, numbers = '']) =>
        (numbers.match(/\d+/g) ?? []).map((number) => ({ file, text, number: Number(number) })),
      ),
    );
    expect(mentions.length).to.be.above(50);
    expect(mentions.filter(({ number }) => !rules.includes(number))).to.deep.equal([]);
  });
});

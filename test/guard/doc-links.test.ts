import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

const docs = readdirSync(new URL('../../docs', import.meta.url), { recursive: true, encoding: 'utf8' });
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'bench/README.md',
  'examples/order-events/README.md',
  'examples/express-app/README.md',
  ...docs.map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));
const read = (page: string): string => readFileSync(join(REPO_DIR, page), 'utf8');

/** What GitHub makes of headings: lower case, without signs, a hyphen for each blank. */
const anchorsOf = (page: string): string[] =>
  [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    (title as string)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('guard: the pages of the documentation lead somewhere', () => {
  it('every link names a page that exists, and a heading in it', () => {
    const broken = PAGES.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
        .filter(([, path, anchor]) => {
          const target = path === '' ? page : join(dirname(page), path as string);
          if (!existsSync(join(REPO_DIR, target))) return true;
          return anchor !== undefined && !anchorsOf(target).includes(anchor);
        })
        .map(([link]) => `${page}: ${link}`),
    );
    expect(broken).to.deep.equal([]);
  });

  it('every file of the repository that they name exists', () => {
    const missing = PAGES.flatMap((page) =>
      [...read(page).matchAll(/`((?:src|lua|test|deploy|bench|docs|examples)\/[\w./-]+\.\w+)`/g)]
        .filter(([, path]) => !existsSync(join(REPO_DIR, path as string)))
        .map(([, path]) => `${page}: ${path}`),
    );
    expect(missing).to.deep.equal([]);
  });
});

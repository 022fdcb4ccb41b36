import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import ts from 'typescript';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';

/** Every test depends on these. */
const READ_BY_ALL =
  /^(package(-lock)?\.json|tsconfig.*\.json|\.mocharc\.json|test\/helpers\/(global|counting-)|test\/run)/;
/** Guards compare whole folders and pages, so any change may affect them. */
const GUARD = 'test/guard/';

export interface Affected {
  /** Test files, relative to the root of the checkout. */
  readonly files: ReadonlySet<string>;
  /** Explains to a person why each test was chosen. */
  readonly lines: readonly string[];
}

/**
 * Returns the test files that a change can affect: files that changed, or that import, read or start a changed file,
 * directly or indirectly.
 * @param ref compared with the working tree, starting from their common ancestor
 * @throws StackError if `ref` is not a commit
 */
export function affectedTests(ref: string): Affected {
  const changed = changedFiles(ref);
  if (changed.length === 0)
    return { files: new Set(), lines: [`Nothing has changed against ${ref}, so no test is run.`] };
  const known = git('ls-files', '--cached', '--others', '--exclude-standard').filter((file) =>
    existsSync(join(REPO_DIR, file)),
  );
  const tests = known.filter((file) => file.endsWith('.test.ts'));
  const all = changed.find((file) => READ_BY_ALL.test(file));
  if (all !== undefined) return { files: new Set(tests), lines: [`${all} has changed: every test depends on it.`] };

  const because = dependents(changed, known);
  const chosen = tests.filter((file) => because.has(file) || file.startsWith(GUARD));
  const why = (file: string): string => {
    const chain = chainOf(file, because);
    if (chain.length > 0) return chain.length === 1 ? 'it has changed' : `uses ${chain.slice(1).join(' ← ')}`;
    return 'guards look at everything';
  };
  const idle = changed.filter((file) => !chosen.some((test) => chainOf(test, because).at(-1) === file));
  return {
    files: new Set(chosen),
    lines: [
      `${changed.length} files have changed against ${ref}; ${chosen.length} of ${tests.length} test files may notice:`,
      ...chosen.filter((file) => !file.startsWith(GUARD)).map((file) => `  ${file}: ${why(file)}`),
      `  ${GUARD}*: guards look at everything`,
      ...idle.map((file) => `No other test is run for ${file}: none imports it, or another change is nearer to them.`),
    ],
  };
}

function changedFiles(ref: string): string[] {
  let base: string;
  try {
    base = git('merge-base', 'HEAD', ref)[0] as string;
  } catch (cause) {
    throw new StackError(`${ref} is no commit of this repository; folders stand before --changed.`, { cause });
  }
  const changed = [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')];
  return [...new Set(changed)].filter((file) => file !== 'node_modules').sort();
}

function git(...args: string[]): string[] {
  const text = execFileSync('git', args, { cwd: REPO_DIR, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  return text.split('\n').filter((line) => line !== '');
}

/** Returns for each file that depends on a changed file the next file on the shortest path. Null for changed files. */
function dependents(changed: readonly string[], known: readonly string[]): Map<string, string | null> {
  const users = new Map<string, string[]>();
  for (const file of known.filter((name) => /\.(ts|mjs|cjs)$/.test(name))) {
    for (const used of usedBy(file, known)) users.set(used, [...(users.get(used) ?? []), file]);
  }
  const because = new Map<string, string | null>(changed.map((file) => [file, null]));
  for (const file of because.keys()) {
    // the outer loop finds them again
    for (const user of users.get(file) ?? []) if (!because.has(user)) because.set(user, file);
  }
  return because;
}

function chainOf(file: string, because: ReadonlyMap<string, string | null>): string[] {
  const chain: string[] = [];
  for (let at = because.has(file) ? file : null; at !== null; at = because.get(at) ?? null) chain.push(at);
  return chain;
}

/**
 * Returns the files that a file imports, even only for types, or names in `new URL('…', import.meta.url)` or below
 * `PACKAGE_ROOT`, to start or read. A program in `dist` stands for its source.
 */
function usedBy(file: string, known: readonly string[]): string[] {
  const text = readFileSync(join(REPO_DIR, file), 'utf8');
  const here = dirname(file);
  const imports = ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName);
  const urls = [...text.matchAll(/new URL\('(\.[^']*)', import\.meta\.url\)/g)].map(([, path]) => path as string);
  const packaged = [...text.matchAll(/new URL\('([^']*)', PACKAGE_ROOT\)/g)].map(([, path]) => path as string);
  const built = [...text.matchAll(/'(?:\.\.\/)*dist\/([\w/-]+)\.js'/g)].map(([, path = '']) =>
    /^local/.test(path) ? `deploy/local/${basename(path)}.ts` : `src/${path}.ts`,
  );
  const beside = [...imports.filter((name) => name.startsWith('.')), ...urls].map((name) => join(here, name));
  const found = [...beside, ...packaged].flatMap((name) => {
    const path = relative(REPO_DIR, join(REPO_DIR, name));
    if (path === '' || path === '..') return []; // the checkout as a whole
    const full = join(REPO_DIR, path);
    if (existsSync(full) && statSync(full).isDirectory()) return known.filter((one) => one.startsWith(`${path}/`));
    return [path.replace(/\.js$/, '.ts'), path];
  });
  return [...found, ...built];
}

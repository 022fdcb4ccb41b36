import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { DEFAULT_ARTIFACTS_DIR, REPO_DIR } from '../../deploy/local/stack/paths.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';

/**
 * The previous release, which must run beside this release. Names the commit, too, because a clone may have no tags.
 * Must be changed for each release (CONTRIBUTING.md, "Make a release").
 */
export const RELEASE_BEFORE = { tag: 'v1.1.0-beta.1', commit: 'a03adc3a50b2e57c38663447494d640ea564c523' } as const;

/** The files that its programs read, in addition to their packages. */
const PARTS = ['src', 'lua', 'config', 'deploy/prometheus', 'package.json', 'package-lock.json', '.npmrc'];
/** Time to install some hundred packages. */
const INSTALL_MAX_MS = 300_000;
/** Size of all of `src` as a tar. */
const ARCHIVE_BYTES_MAX = 64 * 1024 ** 2;

/** A folder per commit, next to the servers that tests fetch once. */
const HOME = join(DEFAULT_ARTIFACTS_DIR, `release-${RELEASE_BEFORE.commit.slice(0, 12)}`);

/**
 * Returns a sentence that says why the release cannot be built from this clone, or null if it can. @throws StackError
 * if the tag names another commit
 */
export function releaseBeforeMissing(): string | null {
  const { tag, commit } = RELEASE_BEFORE;
  const tagged = gitRevision(`refs/tags/${tag}^{commit}`);
  if (tagged !== null && tagged !== commit) {
    throw new StackError(
      `Tag ${tag} is commit ${tagged.slice(0, 8)}, and test/helpers/release-before.ts says ${commit.slice(0, 8)}: correct one of them.`,
    );
  }
  if (existsSync(HOME) || gitRevision(`${commit}^{commit}`) !== null) return null;
  return `the release before this one (${tag}, commit ${commit.slice(0, 8)}) is not in this clone; \`git fetch --unshallow --tags\` brings its history`;
}

function gitRevision(name: string): string | null {
  const { status, stdout } = spawnSync('git', ['rev-parse', '--verify', '--quiet', name], {
    cwd: REPO_DIR,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return status === 0 ? stdout.trim() : null;
}

/**
 * Compiles the programs of the release once, for modules that import no package.
 * @returns their folder
 * @throws StackError with a sentence if this clone lacks the history
 */
export function compiledRelease(): string {
  if (existsSync(HOME)) return HOME;
  const missing = releaseBeforeMissing();
  if (missing !== null) throw new StackError(missing);
  mkdirSync(DEFAULT_ARTIFACTS_DIR, { recursive: true });
  const draft = mkdtempSync(join(DEFAULT_ARTIFACTS_DIR, '.compiling-'));
  try {
    const archive = execFileSync('git', ['archive', RELEASE_BEFORE.commit, '--', ...PARTS], {
      cwd: REPO_DIR,
      maxBuffer: ARCHIVE_BYTES_MAX,
    });
    execFileSync('tar', ['-x', '-C', draft], { input: archive });
    for (const name of readdirSync(join(draft, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (name.endsWith('.ts') && !name.startsWith('web/')) compile(draft, name); // the pages are not needed
    }
    if (!existsSync(HOME)) renameSync(draft, HOME); // unless another process was faster
    return HOME;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Compiles each file alone, without checking types. */
const COMPILER_OPTIONS = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };

function compile(home: string, name: string): void {
  const to = join(home, 'dist', name.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(to), { recursive: true });
  const text = readFileSync(join(home, 'src', name), 'utf8');
  writeFileSync(to, ts.transpileModule(text, { compilerOptions: COMPILER_OPTIONS }).outputText);
}

/**
 * Installs the programs of the release with the packages of its lock file.
 * @returns their entry
 * @throws StackError with a sentence if this clone lacks the history, or npm cannot get the packages
 */
export function installedRelease(): string {
  const home = compiledRelease();
  if (!existsSync(join(home, 'node_modules'))) install(home);
  return join(home, 'dist/cli/main.js');
}

/** Installs in a folder that gets its name only when it is complete. */
function install(home: string): void {
  const draft = mkdtempSync(join(home, '.installing-'));
  try {
    for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
      writeFileSync(join(draft, name), readFileSync(join(home, name)));
    }
    const args = ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
    const { status, stderr } = spawnSync('npm', args, {
      cwd: draft,
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
      timeout: INSTALL_MAX_MS,
    });
    if (status !== 0) throw new StackError(`npm could not install the packages of ${RELEASE_BEFORE.tag}: ${stderr}`);
    if (!existsSync(join(home, 'node_modules'))) renameSync(join(draft, 'node_modules'), join(home, 'node_modules'));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

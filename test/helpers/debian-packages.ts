import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** The folder of servers that tests fetch once. */
const FOLDER = new URL('../../.stack/artifacts/', import.meta.url).pathname;
/** Time for about 100 MB. */
const FETCH_MAX_MS = 300_000;

export interface DebianPackages {
  /** Name of the folder into which they are unpacked. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Whether to include dependencies that this machine lacks. */
  readonly withDependencies: boolean;
  /** A release other than this machine's, such as `trixie`, without dependencies. */
  readonly suite?: string;
}

/**
 * Asks the mirror of this machine for another release with separate package lists, so that the lists of the machine
 * stay unchanged.
 */
const OF_SUITE = `
  site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m1 '/debian/*$')
  mkdir -p apt/lists/partial apt/cache/archives/partial
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $SUITE main" >apt/sources.list
  of_suite() {
    apt-get -qq -o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=- \
      -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" "$@"
  }
  of_suite update
  of_suite download "$@"`;

/**
 * Unpacks Debian packages once, next to the other servers. Installs nothing, so it needs no root.
 * @returns the folder, or the reason why the packages are unavailable
 */
export async function unpackDebian({
  name,
  packages,
  withDependencies,
  suite,
}: DebianPackages): Promise<{ readonly folder: string } | { readonly missing: string }> {
  const folder = join(FOLDER, `debian-${name}`);
  if (existsSync(folder)) return { folder };
  mkdirSync(FOLDER, { recursive: true });
  const work = mkdtempSync(join(FOLDER, `.fetching-${name}-`));
  const which = withDependencies
    ? 'names=$(apt-get -s install --no-install-recommends "$@" | sed -n "s/^Inst \\([^ ]*\\).*/\\1/p")'
    : 'names=$*';
  const ofMachine = `fetch() { ${which}; apt-get -q download $names; }
    fetch "$@" || { apt-get -qq update; fetch "$@"; }`;
  const script = `${suite === undefined ? ofMachine : OF_SUITE}
    mkdir root; for package in *.deb; do dpkg-deb -x "$package" root; done`;
  try {
    const env = { ...process.env, SUITE: suite };
    await run('sh', ['-ec', script, 'sh', ...packages], { cwd: work, env, timeout: FETCH_MAX_MS });
    if (!existsSync(folder)) renameSync(join(work, 'root'), folder); // another process may have been faster
    return { folder };
  } catch (error) {
    if (existsSync(folder)) return { folder };
    const { stderr = '' } = error as { readonly stderr?: string };
    const why = stderr.trim().split('\n').at(-1) || String(error);
    return {
      missing: `apt-get cannot fetch Debian's ${packages.join(', ')} (${why}). Install them, or run where apt-get works.`,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Returns the file of this name in PATH, if any. */
export function inPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(':');
  return folders.map((folder) => join(folder, name)).find((file) => existsSync(file));
}

import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { runCommand, versionOf } from './run-command.js';
import { StackError } from './stack-error.js';

export interface DebianPackages {
  /** Name of the Debian release, such as `trixie`, which may differ from the release of this machine. */
  readonly release: string;
  readonly packages: readonly string[];
  /** Whether to include all dependencies, down to the C library. */
  readonly withDependencies: boolean;
}

/** Allows for a slow line: a server with its dependencies has about 60 MB. */
const FETCH_MAX_MS = 30 * 60_000;
/** The keys that sign every release. apt has its own keys on Debian, and reports if they are missing. */
const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * Unpacks packages of a Debian release into a folder. Installs nothing, so it needs no root. Uses a separate apt state
 * without any package, and the mirror of this machine. apt checks the signature of the release, and with it the hash
 * of each package.
 * @returns SHA-256 of each package, by file name
 * @throws StackError with the reason of apt
 */
export async function unpackDebian(
  { release, packages, withDependencies }: DebianPackages,
  folder: string,
  { onText, signal }: { readonly onText: (text: string) => void; readonly signal?: AbortSignal | undefined },
): Promise<Record<string, string>> {
  const what = packages.join(', ');
  for (const program of ['apt-get', 'dpkg-deb']) {
    if ((await versionOf(program, '--version')) === null) throw unavailable(what, `there is no ${program} here`);
  }
  const apt = join(folder, 'apt');
  const archives = join(apt, 'cache', 'archives');
  for (const dir of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(apt, dir), { recursive: true });
  const signed = existsSync(KEYS) ? `[signed-by=${KEYS}] ` : '';
  writeFileSync(join(apt, 'sources.list'), `deb ${signed}${await debianMirror(what)} ${release} main\n`);
  writeFileSync(join(apt, 'status'), '');
  writeFileSync(join(apt, 'apt.conf'), aptConf(apt));
  onText(`asking Debian ${release} for ${what}`);
  const fetch = withDependencies
    ? 'apt-get -q -y --no-install-recommends --download-only install'
    : 'apt-get -q download';
  const script = `export APT_CONFIG="$PWD/apt.conf"
    apt-get -q update
    cd cache/archives
    ${fetch} "$@"
    for package in *.deb; do dpkg-deb -x "$package" ../../..; done`;
  const { exitCode, output } = await runCommand('sh', ['-ec', script, 'sh', ...packages], {
    cwd: apt,
    timeoutMs: FETCH_MAX_MS,
    signal,
  });
  const debs = readdirSync(archives).filter((name) => name.endsWith('.deb'));
  if (exitCode !== 0 || debs.length === 0) throw unavailable(what, reasonIn(output));
  return Object.fromEntries(debs.sort().map((deb) => [decodeURIComponent(deb), sha256(join(archives, deb))]));
}

const sha256 = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

const unavailable = (what: string, why: string): StackError =>
  new StackError(
    `Debian's ${what} cannot be downloaded (${why}); install the server and set its path (docs/servers.md).`,
  );

const reasonIn = (output: string): string =>
  (/^E: (.+)$/m.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'apt said nothing')
    .replace(/https?:\/\/[^\s)]+/g, 'the mirror')
    .slice(0, 200);

/** Returns the first apt source of this machine that is Debian itself, not its security updates. */
async function debianMirror(what: string): Promise<string> {
  const format = ['--format', '$(ORIGIN)|$(LABEL)|$(REPO_URI)', 'Created-By: Packages'];
  const { output } = await runCommand('apt-get', ['indextargets', ...format], { timeoutMs: 60_000 });
  const sources = output.split('\n').map((line) => line.split('|'));
  const known = sources.find(([origin, label]) => origin === 'Debian' && label === 'Debian');
  // before the first `apt-get update` only the address is known
  const mirror = known ?? sources.find(([origin, , uri]) => origin === '' && /\/debian\/?$/.test(uri ?? ''));
  if (mirror?.[2] === undefined) throw unavailable(what, 'apt knows no mirror of Debian on this machine');
  return mirror[2];
}

const aptConf = (dir: string): string => `Dir::Etc::SourceList "${dir}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "${dir}";
Dir::State::Lists "${dir}/lists";
Dir::State::Status "${dir}/status";
Dir::Cache "${dir}/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
`;

/**
 * Writes a script that starts an unpacked program with its own C library and libraries, because those of this machine
 * may be older. The script finds them relative to itself, so its folder may be moved.
 * @param folder where the packages were unpacked
 * @param program path in this folder
 * @returns the path of the script
 */
export function writeLauncher(folder: string, program: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((file) => file.isFile());
  const paths = files.map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
  const loader = paths.find((path) => /^ld-linux.*\.so\.\d+$/.test(basename(path)));
  if (loader === undefined) throw new StackError(`${folder} holds no C library; delete it and start again.`);
  const isLibrary = (path: string): boolean => /^(usr\/)?lib\/.*\/lib[^/]+\.so\.[\d.]+$/.test(path);
  const libraries = [...new Set(paths.filter(isLibrary).map(dirname))].map((path) => `$here/${path}`);
  const script = join(folder, 'launch', basename(program));
  mkdirSync(dirname(script));
  writeFileSync(
    script,
    `#!/bin/sh
here=\${0%/*}/..
exec "$here/${loader}" --library-path "${libraries.join(':')}" --argv0 ${basename(program)} "$here/${program}" "$@"
`,
  );
  chmodSync(script, 0o755);
  return script;
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { runCommand, versionOf } from './run-command.js';
import { StackError } from './stack-error.js';

/** The plugin version that the poms name. */
export const DEPENDENCY_PLUGIN = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1';

/** Time for 400 MB over a slow line. Maven has shorter limits for a dead line. */
const DOWNLOAD_TIMEOUT_MS = 30 * 60_000;
const REPORT_EVERY_MS = 1_000;

interface MavenRun {
  /** Name for people. */
  readonly what: string;
  /** Folder whose jars are counted as progress. */
  readonly jarsIn?: string;
  /** Working directory, because a goal without a pom leaves files there. Defaults to the current folder. */
  readonly cwd?: string;
  /** Called with one short line of progress. */
  readonly onText: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Runs Maven goals that fetch files. @throws StackError with Maven's own first reason */
export async function runMaven(
  args: readonly string[],
  { what, jarsIn, cwd, onText, signal }: MavenRun,
): Promise<void> {
  const maven = await findMaven();
  onText(`asking Maven for ${what}`);
  const counter = new DownloadCounter();
  const ticker = setInterval(() => onText(counter.text(countJars(jarsIn))), REPORT_EVERY_MS);
  try {
    const { exitCode, output } = await runCommand(maven, ['-B', ...args], {
      timeoutMs: DOWNLOAD_TIMEOUT_MS,
      ...(cwd !== undefined && { cwd }),
      signal,
      onLine: (line) => counter.take(line),
    });
    if (exitCode !== 0) throw new StackError(mavenFailure(output));
  } finally {
    clearInterval(ticker);
  }
}

/** Counts jars. RocketMQ has 150 jars, which are copied one by one after Maven has them. */
function countJars(folder: string | undefined): number {
  try {
    return folder === undefined ? 0 : readdirSync(folder).length;
  } catch {
    return 0; // Maven has not made the folder yet
  }
}

/** SHA-256 of the tested files, by `sumOf`. Maven compares files only with sums of the same repository. */
const SUMS = {
  'RocketMQ 5.4.0': '67802d22b5f82fb5b3c92c67b71b5c10bd98ec2a89b919b9d094a92986e98676',
  'RocketMQ 5.3.3': '5151659f7db39fc8665dd80229ae52c89580de44e4ac19f714535477048a95be',
  'MariaDB 11.4.5': 'd9e51a69f74f97ac633c85a725e0d412b268fab0ff24202c7f9867450752b7e5',
  'MySQL 8.0.15': 'aeb8354f3b04029ae667ff65f2211dc574ffd6f61d14d4fa3dfa8352f0d3b9b2',
  'Redis 6.2 for x64': 'ae40667a2dc8f012dcd5ffab985f8eae453856ca13d9b764491811cdb669967e',
  'Redis 6.2 for arm64': '64eceb7fb03eee9aa7df956cd3ae02c9bbcebb644370a78990c6209f40b1a725',
} as const;
export type Tried = keyof typeof SUMS;

/** @throws StackError when these files, relative to the folder, differ from the tested files */
export function assertTried(what: Tried, folder: string, files: readonly string[]): void {
  const sum = sumOf(folder, files);
  if (sum === SUMS[what]) return;
  throw new StackError(`The download of ${what} has a wrong SHA-256 (${sum}) and was deleted.`);
}

/** Returns one sum over the names and contents of files. */
export function sumOf(folder: string, files: readonly string[]): string {
  const all = createHash('sha256');
  for (const file of [...files].sort()) {
    const sum = createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex');
    all.update(`${sum}  ${file}\n`);
  }
  return all.digest('hex');
}

/** Returns every file below a part of a folder, relative to the folder. */
export const filesBelow = (folder: string, part: string): string[] =>
  readdirSync(join(folder, part), { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)));

/** Counts the downloads that Maven reports: "Downloaded from central: …/x.jar (1.2 MB at 3 MB/s)". */
class DownloadCounter {
  #files = 0;
  #bytes = 0;

  take(line: string): void {
    const size = /\bDownloaded from .*\(([\d.]+) (B|kB|MB|GB) at /.exec(line);
    if (size === null) return;
    const unit = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[size[2] as 'B' | 'kB' | 'MB' | 'GB'];
    this.#files += 1;
    this.#bytes += Number(size[1]) * unit;
  }

  /** @param jars number of jars in place */
  text(jars: number): string {
    const parts = [
      this.#files > 0 ? `${this.#files} files downloaded (${(this.#bytes / 1e6).toFixed(0)} MB)` : '',
      jars > 0 ? `${jars} jars in place` : '',
    ].filter((part) => part !== '');
    return parts.length === 0 ? 'Maven is running' : parts.join(', ');
  }
}

/** Extracts one sentence from a page of Maven's errors. */
function mavenFailure(output: string): string {
  if (/No space left on device/i.test(output)) {
    return 'Maven ran out of disk space; free about 1 GiB and run the same command again.';
  }
  const reason = /\[ERROR\] (.+)/.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'it printed nothing';
  const hint = /offline|Unknown host|Connection|timed out|Could not transfer/i.test(reason)
    ? 'check the network (or a proxy in the Maven settings)'
    : 'correct the named problem';
  const short = reason
    .replace(/ -> \[Help \d+\].*/, '')
    .replace(/https?:\/\/[^\s)]+/g, 'the repository')
    .slice(0, 300);
  return `Maven could not fetch the servers: ${short.trim()}; ${hint} and run the same command again.`;
}

/** @returns the Maven program. @throws StackError when there is no Maven or it does not run */
async function findMaven(): Promise<string> {
  const result = await versionOf('mvn', '-version');
  if (result === null) {
    throw new StackError('No mvn found in PATH; install Maven, which downloads the servers at the first start.');
  }
  if (result.exitCode !== 0) {
    const reason = result.output.trim().split('\n')[0] ?? '';
    throw new StackError(`Maven does not run (${reason}); check \`mvn -version\` and JAVA_HOME.`);
  }
  return 'mvn';
}

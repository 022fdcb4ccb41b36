import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assertDiskSpace } from './files.js';
import { TEMPLATES_DIR } from './paths.js';
import { waitUntil } from './probes.js';
import { tryLock } from './processes.js';
import { runCommand, versionOf } from './run-command.js';
import { StackError } from './stack-error.js';

/** Where the programs of the servers are. */
export interface Artifacts {
  /** Folder with the RocketMQ jars. */
  readonly rocketmqLib: string;
  readonly redisServer: string;
  readonly mariadbd: string;
}

/** The unpacked servers (420 MB) and a first fill of the local Maven repository (250 MB), with room to spare. */
const SPACE_NEEDED_BYTES = 1024 ** 3;
/** The jar twice: in the local Maven repository, and here. */
const ZIPKIN_SPACE_BYTES = 400 * 1024 ** 2;
/** The longest that another process may keep us waiting while it downloads. */
const LOCK_WAIT_MS = 20 * 60_000;

const POM = join(TEMPLATES_DIR, 'pom.xml');
const ZIPKIN_POM = join(TEMPLATES_DIR, 'zipkin.xml');
const DRAFT = '.part-';

/**
 * Makes sure that the programs are there, downloading them with Maven where they are not. A folder counts only with
 * its marker, which is written before the folder gets its name: a half download is thrown away and done again.
 * @param onText called with progress, one short line each time
 * @throws StackError
 */
export async function ensureArtifacts(
  cacheDir: string,
  env: NodeJS.ProcessEnv,
  options: { onText: (text: string) => void; signal?: AbortSignal | undefined },
): Promise<Artifacts> {
  const home = join(cacheDir, pomHash(POM));
  if (!isComplete(home) || draftsIn(cacheDir).length > 0) await fill(cacheDir, home, options);
  return {
    rocketmqLib: join(home, BUNDLED.rocketmq),
    redisServer: binary(env, 'REDIS_SERVER_BIN', join(home, BUNDLED.redis)),
    mariadbd: binary(env, 'MARIADBD_BIN', join(home, BUNDLED.mariadbd)),
  };
}

/** One folder per state of a pom: a new version never mixes with an old one. */
const pomHash = (pom: string): string => createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 12);

/**
 * Makes sure that Zipkin is there. Its folder gets its name when the jar is whole.
 * @returns the path of its jar
 * @throws StackError
 */
export async function ensureZipkin(
  cacheDir: string,
  options: { onText: (text: string) => void; signal?: AbortSignal | undefined },
): Promise<string> {
  const home = join(cacheDir, `zipkin-${pomHash(ZIPKIN_POM)}`);
  const jar = join(home, 'zipkin.jar');
  if (existsSync(jar)) return jar;
  const release = await lockCache(join(cacheDir, 'download.lock'), options.onText, options.signal);
  const draft = `${home}${DRAFT}${process.pid}`;
  try {
    if (existsSync(jar)) return jar; // the process we waited for did it
    assertDiskSpace(cacheDir, ZIPKIN_SPACE_BYTES);
    await downloadArtifacts(ZIPKIN_POM, draft, { ...options, what: 'Zipkin' });
    rmSync(home, { recursive: true, force: true });
    renameSync(draft, home);
    return jar;
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}

/** The binary named by an environment variable, else the bundled one. */
function binary(env: NodeJS.ProcessEnv, name: string, bundled: string): string {
  const own = env[name];
  if (own !== undefined && own !== '') {
    if (!existsSync(own)) throw new StackError(`${name} names ${own}, which does not exist; correct or unset it.`);
    return own;
  }
  if (!existsSync(bundled)) {
    throw new StackError(
      `No binary for ${process.platform}/${process.arch} is bundled; install the server and name it with ${name}.`,
    );
  }
  return bundled;
}

async function fill(
  cacheDir: string,
  home: string,
  { onText, signal }: { onText: (text: string) => void; signal?: AbortSignal | undefined },
): Promise<void> {
  const release = await lockCache(join(cacheDir, 'download.lock'), onText, signal);
  const draft = `${home}${DRAFT}${process.pid}`;
  try {
    for (const entry of draftsIn(cacheDir)) rmSync(join(cacheDir, entry), { recursive: true, force: true });
    if (isComplete(home)) return; // the process we waited for did it
    assertDiskSpace(cacheDir, SPACE_NEEDED_BYTES);
    await downloadArtifacts(POM, draft, { onText, signal, what: 'RocketMQ, MariaDB and Redis' });
    onText('arranging the files');
    arrangeArtifacts(draft);
    rmSync(home, { recursive: true, force: true });
    renameSync(draft, home);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}

async function lockCache(path: string, onText: (text: string) => void, signal?: AbortSignal): Promise<() => void> {
  let release: (() => void) | null = null;
  const locked = await waitUntil(
    () => {
      const lock = tryLock(path);
      if ('heldBy' in lock) onText(`waiting for the download of process ${lock.heldBy}`);
      else ({ release } = lock);
      return release !== null;
    },
    { timeoutMs: LOCK_WAIT_MS, everyMs: 500, signal },
  );
  if (!locked || release === null) throw new StackError(`Another process keeps ${path}; end it and start again.`);
  return release;
}

/** What starts that were cut off left behind, or the work of one under way: to be removed under the lock only. */
function draftsIn(cacheDir: string): string[] {
  return existsSync(cacheDir) ? readdirSync(cacheDir).filter((name) => name.includes(DRAFT)) : [];
}

/** Names inside a finished artifact folder. */
export const BUNDLED = {
  rocketmq: 'rocketmq',
  redis: 'redis-server',
  mariadb: 'mariadb',
  mariadbd: 'mariadb/bin/mariadbd',
} as const;

/** Lists what the folder holds, with sizes in bytes. Written last: without it the folder counts for nothing. */
const MARKER = 'complete.json';

/** As the embedded-redis artifact calls the processors. */
const REDIS_PLATFORMS: Partial<Record<NodeJS.Architecture, string>> = { x64: 'linux-amd64', arm64: 'linux-arm64' };

/** Gives the unpacked files short names, sets the run bits, drops what this machine cannot use, writes the marker. */
function arrangeArtifacts(home: string): void {
  const [redisJar, mariadbJar] = [join(home, 'redis-jar'), join(home, 'mariadb-jar')];
  const platform = REDIS_PLATFORMS[process.arch];
  const redis = readdirSync(redisJar).find((file) => platform !== undefined && file.endsWith(platform));
  if (redis !== undefined) takeBinary(join(redisJar, redis), join(home, BUNDLED.redis));

  const mariadbd = (readdirSync(mariadbJar, { recursive: true }) as string[]).find((f) => f.endsWith('bin/mariadbd'));
  if (mariadbd === undefined) throw new StackError('The MariaDB artifact holds no bin/mariadbd; check the pom.');
  if (process.arch === 'x64') {
    renameSync(dirname(dirname(join(mariadbJar, mariadbd))), join(home, BUNDLED.mariadb));
    chmodSync(join(home, BUNDLED.mariadbd), 0o755);
  }
  for (const folder of [redisJar, mariadbJar, join(home, 'target')]) rmSync(folder, { recursive: true, force: true });

  const jars = readdirSync(join(home, BUNDLED.rocketmq)).map((jar) => join(BUNDLED.rocketmq, jar));
  const files = [...jars, BUNDLED.mariadbd, BUNDLED.redis].filter((file) => existsSync(join(home, file)));
  const sizes = Object.fromEntries(files.map((file) => [file, statSync(join(home, file)).size]));
  writeFileSync(join(home, MARKER), `${JSON.stringify(sizes)}\n`);
}

/** True for a folder with its marker, whose files are all there in full: files can get lost later, too. */
function isComplete(home: string): boolean {
  try {
    const sizes = JSON.parse(readFileSync(join(home, MARKER), 'utf8')) as Record<string, number>;
    return Object.entries(sizes).every(([file, size]) => statSync(join(home, file)).size === size);
  } catch {
    return false;
  }
}

function takeBinary(from: string, to: string): void {
  renameSync(from, to);
  chmodSync(to, 0o755);
}

/** 400 MB over a slow line; Maven has shorter limits of its own for a line that is dead. */
const DOWNLOAD_TIMEOUT_MS = 30 * 60_000;
const REPORT_EVERY_MS = 1_000;

/**
 * Lets Maven fetch and unpack everything the pom pins into `outDir`.
 * @throws StackError with Maven's own first reason
 */
async function downloadArtifacts(
  pom: string,
  outDir: string,
  { onText, signal, what }: { onText: (text: string) => void; signal?: AbortSignal | undefined; what: string },
): Promise<void> {
  const maven = await findMaven();
  onText(`asking Maven for ${what}`);
  const counter = new DownloadCounter();
  const ticker = setInterval(() => onText(counter.text(countJars(outDir))), REPORT_EVERY_MS);
  try {
    const { exitCode, output } = await runCommand(maven, ['-B', '-f', pom, 'generate-resources', `-Dout=${outDir}`], {
      timeoutMs: DOWNLOAD_TIMEOUT_MS,
      signal,
      onLine: (line) => counter.take(line),
    });
    if (exitCode !== 0) throw new StackError(mavenFailure(output));
  } finally {
    clearInterval(ticker);
  }
}

/** RocketMQ has 150 jars; they are copied one by one once Maven has them. */
function countJars(outDir: string): number {
  try {
    return readdirSync(join(outDir, 'rocketmq')).length;
  } catch {
    return 0; // Maven has not come that far
  }
}

/** Counts what Maven reports: "Downloaded from central: …/x.jar (1.2 MB at 3 MB/s)". */
export class DownloadCounter {
  #files = 0;
  #bytes = 0;

  take(line: string): void {
    const size = /\bDownloaded from .*\(([\d.]+) (B|kB|MB|GB) at /.exec(line);
    if (size === null) return;
    const unit = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[size[2] as 'B' | 'kB' | 'MB' | 'GB'];
    this.#files += 1;
    this.#bytes += Number(size[1]) * unit;
  }

  /** @param jars how many are in place */
  text(jars: number): string {
    const parts = [
      this.#files > 0 ? `${this.#files} files downloaded (${(this.#bytes / 1e6).toFixed(0)} MB)` : '',
      jars > 0 ? `${jars} jars in place` : '',
    ].filter((part) => part !== '');
    return parts.length === 0 ? 'Maven is at work' : parts.join(', ');
  }
}

/** One sentence out of a page of Maven's errors. */
export function mavenFailure(output: string): string {
  if (/No space left on device/i.test(output)) {
    return 'Maven ran out of disk space; free about 1 GiB and run the same command again.';
  }
  const reason = /\[ERROR\] (.+)/.exec(output)?.[1] ?? output.trim().split('\n').at(-1) ?? 'it printed nothing';
  const hint = /offline|Unknown host|Connection|timed out|Could not transfer/i.test(reason)
    ? 'check the network (or a proxy in the Maven settings)'
    : 'correct what it names';
  const short = reason
    .replace(/ -> \[Help \d+\].*/, '')
    .replace(/https?:\/\/[^\s)]+/g, 'the repository')
    .slice(0, 300);
  return `Maven could not fetch the servers: ${short.trim()}; ${hint} and run the same command again.`;
}

/** @returns the Maven program. @throws StackError when there is none or it does not run */
async function findMaven(): Promise<string> {
  const result = await versionOf('mvn', '-version');
  if (result === null) {
    throw new StackError('No mvn found in PATH; install Maven, it downloads the servers at the first start.');
  }
  if (result.exitCode !== 0) {
    const reason = result.output.trim().split('\n')[0] ?? '';
    throw new StackError(`Maven does not run (${reason}); check \`mvn -version\` and JAVA_HOME.`);
  }
  return 'mvn';
}

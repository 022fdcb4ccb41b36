import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { assertDiskSpace } from './files.js';
import { assertTried, filesBelow, runMaven, type Tried } from './maven.js';
import { type FetchOptions, OTHER_SERVERS, type OtherServer } from './other-servers.js';
import { TEMPLATES_DIR } from './paths.js';
import { waitUntil } from './probes.js';
import { tryLock } from './processes.js';
import { StackError } from './stack-error.js';
import { OWN, OWN_SERVERS, ownServer, type VersionedServer, type Versions } from './versions.js';

/** Locations of the server programs. */
export interface Artifacts {
  /** Folder with the RocketMQ jars. */
  readonly rocketmqLib: string;
  readonly redisServer: string;
  /** A mysqld or a mariadbd. */
  readonly mysqld: string;
}

/** The unpacked servers (420 MB) and a new local Maven repository (250 MB), with room to spare. */
const SPACE_NEEDED_BYTES = 1024 ** 3;
/** The largest of the other servers, MySQL 9.7 with its libraries, packed and unpacked. */
const OTHER_SPACE_BYTES = 600 * 1024 ** 2;
/** Maximum wait for another process that downloads. */
const LOCK_WAIT_MS = 20 * 60_000;

const POM = join(TEMPLATES_DIR, 'pom.xml');
const DRAFT = '.part-';

/**
 * Downloads the programs that are missing. The default servers share a folder that is valid only if it contains its
 * marker. The marker is written before the folder gets its name, so a partial download is discarded and repeated.
 * @throws StackError
 */
export async function ensureArtifacts(
  cacheDir: string,
  env: NodeJS.ProcessEnv,
  versions: Versions,
  options: FetchOptions,
): Promise<Artifacts> {
  const home = join(cacheDir, pomHash());
  if (!isComplete(home) || draftsIn(cacheDir).length > 0) await fill(cacheDir, home, options);
  const find = async (server: VersionedServer, bundled: string): Promise<string> => {
    if (versions[server] === OWN) return ownServer(server, env);
    const name = `${server} ${versions[server]}`;
    const other = OTHER_SERVERS[name];
    if (other !== undefined) return ensureOther(cacheDir, name, other, options);
    if (existsSync(join(home, bundled))) return join(home, bundled);
    throw new StackError(
      `No binary for ${process.platform}/${process.arch} is available; install the server and set ${OWN_SERVERS[server]}.`,
    );
  };
  return {
    rocketmqLib: await find('rocketmq', BUNDLED.rocketmq),
    redisServer: await find('redis', BUNDLED.redis),
    mysqld: await find('mysql', BUNDLED.mariadbd),
  };
}

/** Names a folder per version of the pom, so that a new version never mixes with an old version. */
const pomHash = (): string => createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12);
const folderOf = (other: string): string => other.replace(' ', '-');

/** Returns the existing Redis program, or null if a stack has never run this version. */
export function findRedisServer(cacheDir: string, env: NodeJS.ProcessEnv, version: Versions['redis']): string | null {
  if (version === OWN) return ownServer('redis', env);
  const name = `redis ${version}`;
  const other = OTHER_SERVERS[name];
  const path = other === undefined ? join(pomHash(), BUNDLED.redis) : join(folderOf(name), other.path);
  return existsSync(join(cacheDir, path)) ? join(cacheDir, path) : null;
}

/** Downloads another server. Its folder gets its name when it is complete. */
async function ensureOther(cacheDir: string, name: string, other: OtherServer, options: FetchOptions): Promise<string> {
  const home = join(cacheDir, folderOf(name));
  const program = join(home, other.path);
  if (existsSync(program)) return program;
  await inDraft(cacheDir, home, options, async (draft) => {
    if (existsSync(program)) return; // another process downloaded it while we waited
    assertDiskSpace(cacheDir, OTHER_SPACE_BYTES);
    mkdirSync(draft);
    await other.fetch(draft, options);
    rmSync(home, { recursive: true, force: true });
    renameSync(draft, home);
  });
  return program;
}

async function fill(cacheDir: string, home: string, options: FetchOptions): Promise<void> {
  await inDraft(cacheDir, home, options, async (draft) => {
    for (const entry of draftsIn(cacheDir)) rmSync(join(cacheDir, entry), { recursive: true, force: true });
    if (isComplete(home)) return; // another process downloaded it while we waited
    assertDiskSpace(cacheDir, SPACE_NEEDED_BYTES);
    const run = { ...options, what: 'RocketMQ, MariaDB and Redis', jarsIn: join(draft, 'rocketmq') };
    await runMaven(['-f', POM, 'generate-resources', `-Dout=${draft}`], run);
    options.onText('unpacking the files');
    arrangeArtifacts(draft);
    rmSync(home, { recursive: true, force: true });
    renameSync(draft, home);
  });
}

/** Lets `work` fill a folder under a temporary name, one process at a time. Removes the temporary folder afterwards. */
async function inDraft(
  cacheDir: string,
  home: string,
  { onText, signal }: FetchOptions,
  work: (draft: string) => Promise<void>,
): Promise<void> {
  const release = await lockCache(join(cacheDir, 'download.lock'), onText, signal);
  const draft = `${home}${DRAFT}${process.pid}`;
  try {
    await work(draft);
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
  if (!locked || release === null)
    throw new StackError(`Another process keeps ${path}; end that process and start again.`);
  return release;
}

/** Returns the drafts of interrupted starts or of a running start. Remove them only under the lock. */
function draftsIn(cacheDir: string): string[] {
  return existsSync(cacheDir) ? readdirSync(cacheDir).filter((name) => name.includes(DRAFT)) : [];
}

/** Names inside the folder of the default servers. */
const BUNDLED = {
  rocketmq: 'rocketmq',
  redis: 'redis-server',
  mariadb: 'mariadb',
  mariadbd: 'mariadb/bin/mariadbd',
} as const;

/** Lists the files of the folder with sizes in bytes. It is written last, and without it the folder is invalid. */
const MARKER = 'complete.json';

/** Processor names in the embedded-redis artifact, and its binary for each. */
const REDIS_PLATFORMS: Partial<Record<NodeJS.Architecture, { readonly suffix: string; readonly tried: Tried }>> = {
  x64: { suffix: 'linux-amd64', tried: 'Redis 6.2 for x64' },
  arm64: { suffix: 'linux-arm64', tried: 'Redis 6.2 for arm64' },
};

/**
 * Gives the unpacked files short names, makes them executable, removes what this machine cannot use, checks the rest
 * and writes the marker.
 */
function arrangeArtifacts(home: string): void {
  const [redisJar, mariadbJar] = [join(home, 'redis-jar'), join(home, 'mariadb-jar')];
  const platform = REDIS_PLATFORMS[process.arch];
  const redis = readdirSync(redisJar).find((file) => platform !== undefined && file.endsWith(platform.suffix));
  if (redis !== undefined) takeBinary(join(redisJar, redis), join(home, BUNDLED.redis));

  const mariadbd = (readdirSync(mariadbJar, { recursive: true }) as string[]).find((f) => f.endsWith('bin/mariadbd'));
  if (mariadbd === undefined) throw new StackError('The MariaDB artifact holds no bin/mariadbd; check the pom.');
  if (process.arch === 'x64') {
    renameSync(dirname(dirname(join(mariadbJar, mariadbd))), join(home, BUNDLED.mariadb));
    chmodSync(join(home, BUNDLED.mariadbd), 0o755);
  }
  for (const folder of [redisJar, mariadbJar, join(home, 'target')]) rmSync(folder, { recursive: true, force: true });

  assertTried('RocketMQ 5.4.0', home, filesBelow(home, BUNDLED.rocketmq));
  if (process.arch === 'x64') assertTried('MariaDB 11.4.5', home, filesBelow(home, BUNDLED.mariadb));
  if (platform !== undefined) assertTried(platform.tried, home, [BUNDLED.redis]);
  const jars = readdirSync(join(home, BUNDLED.rocketmq)).map((jar) => join(BUNDLED.rocketmq, jar));
  const files = [...jars, BUNDLED.mariadbd, BUNDLED.redis].filter((file) => existsSync(join(home, file)));
  const sizes = Object.fromEntries(files.map((file) => [file, statSync(join(home, file)).size]));
  writeFileSync(join(home, MARKER), `${JSON.stringify(sizes)}\n`);
}

/** Whether a folder has its marker and all its files in full size, since files can get lost later. */
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

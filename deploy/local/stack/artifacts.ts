import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { arrangeArtifacts, BUNDLED, isComplete } from './arrange-artifacts.js';
import { assertDiskSpace } from './disk-space.js';
import { tryLock } from './lock.js';
import { downloadArtifacts } from './maven-download.js';
import { TEMPLATES_DIR } from './paths.js';
import { StackError } from './stack-error.js';
import { waitUntil } from './wait-until.js';

/** Where the programs of the servers are. */
export interface Artifacts {
  /** Folder with the RocketMQ jars. */
  readonly rocketmqLib: string;
  readonly redisServer: string;
  readonly mariadbd: string;
}

/** The unpacked servers (420 MB) and a first fill of the local Maven repository (250 MB), with room to spare. */
const SPACE_NEEDED_BYTES = 1024 ** 3;
/** The longest that another process may keep us waiting while it downloads. */
const LOCK_WAIT_MS = 20 * 60_000;

const POM = join(TEMPLATES_DIR, 'pom.xml');
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
  const home = join(cacheDir, pomHash());
  if (!isComplete(home) || draftsIn(cacheDir).length > 0) await fill(cacheDir, home, options);
  return {
    rocketmqLib: join(home, BUNDLED.rocketmq),
    redisServer: binary(env, 'REDIS_SERVER_BIN', join(home, BUNDLED.redis)),
    mariadbd: binary(env, 'MARIADBD_BIN', join(home, BUNDLED.mariadbd)),
  };
}

/** One folder per state of the pom: a new version never mixes with an old one. */
function pomHash(): string {
  return createHash('sha256').update(readFileSync(POM)).digest('hex').slice(0, 12);
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
    await downloadArtifacts(POM, draft, { onText, signal });
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

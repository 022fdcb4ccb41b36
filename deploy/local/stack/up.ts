import { assertDiskSpace } from './disk-space.js';
import { ensureFolder } from './ensure-folder.js';
import type { ManagedServer } from './managed-server.js';
import type { ApplyOutcome } from '../../../src/rocketmq/admin/apply-topics.js';
import { tryLock } from './lock.js';
import type { StackPaths } from './paths.js';
import { runStep, type OnProgress } from './progress.js';
import type { ServerName, Tools } from './servers/server-spec.js';
import { StackError } from './stack-error.js';

/** Data of an empty instance, 200 MB, and room for the first hours. */
const SPACE_NEEDED_BYTES = 512 * 1024 ** 2;
/** When a start failed nobody waits for a clean end of what it had started. */
const GIVE_UP_STOP_MS = 5_000;

export interface UpResult {
  /** What this call started; empty when everything ran already. */
  readonly started: readonly ServerName[];
  readonly topics: ApplyOutcome | 'left_alone';
}

export interface UpSite {
  readonly paths: StackPaths;
  readonly servers: readonly ManagedServer[];
  readonly onProgress: OnProgress;
  readonly tools: (signal?: AbortSignal) => Promise<Tools>;
  readonly rememberPorts: () => void;
  /** Null when topics are not wanted. */
  readonly applyTopics: ((signal: AbortSignal) => Promise<ApplyOutcome>) | null;
}

/** Starts what does not run, all at once, and waits until everything is ready. All or nothing: see undo. */
export async function up(site: UpSite, outer?: AbortSignal): Promise<UpResult> {
  if (process.platform !== 'linux') {
    throw new StackError(
      'The local stack runs on Linux only; point MYSQL_URL, REDIS_URL and the rest at other servers.',
    );
  }
  ensureFolder(site.paths.dir);
  const lock = tryLock(site.paths.lockFile);
  if ('heldBy' in lock) {
    throw new StackError(`Process ${lock.heldBy} is starting this stack already; wait until it is done.`);
  }
  const started: ManagedServer[] = [];
  const failure = new AbortController();
  const signal = outer === undefined ? failure.signal : AbortSignal.any([outer, failure.signal]);
  try {
    const missing = site.servers.filter((server) => server.pid() === null);
    for (const server of missing) server.assertPortsFree(); // before a long download, and again at the start
    if (missing.length > 0) {
      assertDiskSpace(site.paths.dir, SPACE_NEEDED_BYTES);
      await site.tools(signal);
      site.rememberPorts();
    }
    const topics = await startAll(site, started, failure, signal);
    return { started: started.map(({ name }) => name), topics };
  } catch (error) {
    await undo(started);
    throw error;
  } finally {
    lock.release();
  }
}

/** The first failure ends the waiting of the others. */
async function startAll(
  site: UpSite,
  started: ManagedServer[],
  failure: AbortController,
  signal: AbortSignal,
): Promise<UpResult['topics']> {
  let topics: UpResult['topics'] = 'left_alone';
  const jobs = site.servers.map(async (server) => {
    await startOne(server, site.onProgress, started, signal);
    if (server.name !== 'proxy' || site.applyTopics === null) return;
    const { applyTopics } = site;
    await runStep('topics', 'comparing', site.onProgress, async () => {
      topics = await applyTopics(signal);
      return topics === 'unchanged' ? { skipped: 'in place' } : 'created and read back';
    });
  });
  const results = await Promise.allSettled(
    jobs.map((job) => job.catch((error: unknown) => (failure.abort(error), Promise.reject(error as Error)))),
  );
  // the error that came first is the reason of the others
  if (failure.signal.aborted) throw failure.signal.reason;
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return topics;
}

async function startOne(
  server: ManagedServer,
  onProgress: OnProgress,
  started: ManagedServer[],
  signal: AbortSignal,
): Promise<void> {
  await runStep(server.name, 'starting', onProgress, async () => {
    const running = server.pid();
    if (running === null) {
      started.push(server); // before the start: one that fails half-way must be stopped too
      await server.start(signal);
    }
    await server.waitReady({ signal });
    const pid = server.pid() ?? '?';
    return running === null ? `ready (pid ${pid})` : { skipped: `already running (pid ${pid})` };
  });
}

/** Stops what this call started, and nothing else. */
async function undo(started: readonly ManagedServer[]): Promise<void> {
  await Promise.allSettled(started.map((server) => server.stop({ timeoutMs: GIVE_UP_STOP_MS })));
}

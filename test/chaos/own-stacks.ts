import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { progressStyle, showProgress } from '../../deploy/local/stack-progress.js';
import { tryLock } from '../../deploy/local/stack/processes.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { OnProgress, StackStep } from '../../deploy/local/stack/progress.js';
import { type BrokerTiming, SERVER_NAMES } from '../../deploy/local/stack/servers/server-spec.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { openStack, type Stack } from '../../deploy/local/stack/stack.js';
import { migrate } from '../../src/mysql/migrate.js';
import { mysqlIn } from '../helpers/servers.js';
import { createTopics } from './harness/broker.js';
import { unmountBelow } from './harness/disks.js';
import { closeConnections } from './harness/http.js';
import { openControls, type StackControls } from './harness/stack-controls.js';

const BOOT_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES];
const EXIT_RED = 1;

/** `.stack-chaos`, `.stack-chaos-2` … */
const folderOf = (index: number): string => join(REPO_DIR, `.stack-chaos${index === 0 ? '' : `-${index + 1}`}`);

interface OwnStacksOptions {
  readonly count: number;
  readonly keep?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Boots servers for this command, passes them to `work` and stops them, even after a failure.
 * @throws StackError if they do not boot; what `work` throws
 */
export async function onOwnStacks<T>(
  { count, keep, signal }: OwnStacksOptions,
  work: (stacks: readonly StackControls[]) => Promise<T>,
): Promise<T> {
  const folders = Array.from({ length: count }, (_, index) => folderOf(index));
  const booted: OwnStack[] = [];
  const controls: StackControls[] = [];
  const onStrayError = (error: unknown): void => {
    process.exitCode = EXIT_RED;
    console.log(`An error outside all scenarios: ${error instanceof Error ? error.stack : String(error)}`);
  };
  try {
    for (const dir of folders) {
      const boot = (onProgress: OnProgress) => bootOwnStack(dir, onProgress, signal);
      booted.push(await showProgress(progressStyle(false), BOOT_STEPS, boot));
    }
    // the servers must not be left running
    process.on('uncaughtException', onStrayError).on('unhandledRejection', onStrayError);
    for (const { stack } of booted) controls.push(await openControls(stack.dir, stack.env()));
    return await work(controls);
  } finally {
    closeConnections();
    await Promise.all(controls.map((one) => one.close()));
    await Promise.all(booted.map(({ stop }) => stop()));
    if (!keep) for (const dir of folders) rmSync(join(dir, 'data'), { recursive: true, force: true });
  }
}

export interface OwnStackParts {
  readonly prepare?: ((stack: Stack) => Promise<void>) | undefined;
  readonly timing?: BrokerTiming;
  /** Gives MySQL a binary log. */
  readonly serverId?: number;
}

export interface OwnStack {
  readonly stack: Stack;
  /** Stops the servers, including any that SIGSTOP has frozen. Their logs stay until the next boot. */
  stop(): Promise<void>;
}

/**
 * Boots an empty stack on free ports. If it fails, none of it stays running.
 * @param dir folder of the instance; emptied first
 * @param how `prepare` makes topics and schema; `timing` is that of the broker
 * @throws StackError if it does not boot, or is in use by another process
 */
export async function bootOwnStack(
  dir: string,
  onProgress: OnProgress,
  signal: AbortSignal,
  { prepare = prepareStack, timing = 'production', serverId }: OwnStackParts = {},
): Promise<OwnStack> {
  const lock = tryLock(`${dir}.lock`);
  if ('heldBy' in lock) throw new StackError(`Process ${lock.heldBy} already runs on ${dir}; wait until it ends.`);
  const stop = async (): Promise<void> => {
    await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' }); // its data is not needed again
    lock.release();
  };
  try {
    // so that no scenario depends on data of earlier runs
    await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' });
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
    const stack = openStack({ dir, ports: 'free', timing, serverId, onProgress });
    await stack.up({ topics: false, signal });
    await prepare(stack);
    signal.throwIfAborted();
    return { stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates topics, groups and schema for a stack that has just been booted for tests or faults. */
export async function prepareStack(stack: Stack): Promise<void> {
  await createTopics(stack);
  await migrate(mysqlIn(stack.env()));
}

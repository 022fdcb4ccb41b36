import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bootOwnStack, type OwnStack } from './chaos-stack.js';
import { closeConnections } from './harness/http-client.js';
import { openHands, type StackHands } from './harness/stack-hands.js';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import type { OnProgress, StackStep } from '../../deploy/local/stack/progress.js';
import { SERVER_NAMES } from '../../deploy/local/stack/servers/server-spec.js';
import { progressStyle, showProgress } from '../../deploy/local/stack-progress.js';

const BOOT_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES];
const EXIT_RED = 1;

/** `.stack-chaos`, `.stack-chaos-2` … */
const folderOf = (index: number): string => join(REPO_DIR, `.stack-chaos${index === 0 ? '' : `-${index + 1}`}`);

export interface OwnStacksParts {
  /** How many sets of servers. */
  readonly count: number;
  readonly json?: boolean | undefined;
  /** Keeps the data of the servers. */
  readonly keep?: boolean | undefined;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Boots servers of this command's own, gives them to `work` and stops them, whatever comes.
 * @throws StackError when they do not boot; what `work` throws
 */
export async function onOwnStacks<T>(
  { count, json, keep, say, signal }: OwnStacksParts,
  work: (stacks: readonly StackHands[]) => Promise<T>,
): Promise<T> {
  const folders = Array.from({ length: count }, (_, index) => folderOf(index));
  const booted: OwnStack[] = [];
  const hands: StackHands[] = [];
  const stray = (error: unknown): void => {
    process.exitCode = EXIT_RED;
    say(`An error that belongs to no row: ${error instanceof Error ? error.stack : String(error)}`);
  };
  try {
    for (const dir of folders) {
      const boot = (onProgress: OnProgress) => bootOwnStack({ dir, onProgress, signal });
      booted.push(await showProgress(progressStyle(json === true), BOOT_STEPS, boot));
    }
    process.on('uncaughtException', stray).on('unhandledRejection', stray); // the servers must not be left running
    for (const { stack } of booted) hands.push(await openHands(stack.dir, stack.env()));
    return await work(hands);
  } finally {
    closeConnections();
    await Promise.all(hands.map((one) => one.close()));
    await Promise.all(booted.map(({ stop }) => stop()));
    if (!keep) for (const dir of folders) rmSync(join(dir, 'data'), { recursive: true, force: true });
  }
}

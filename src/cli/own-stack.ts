import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bootOwnStack } from '../chaos/chaos-stack.js';
import { closeConnections } from '../chaos/harness/http-client.js';
import { openHands, type StackHands } from '../chaos/harness/stack-hands.js';
import type { Environment } from '../config/load.js';
import { REPO_DIR } from '../stack/paths.js';
import type { StackStep } from '../stack/progress.js';
import { SERVER_NAMES } from '../stack/servers/server-spec.js';
import { progressStyle, showProgress } from './stack-progress.js';

const CHAOS_DIR = join(REPO_DIR, '.stack-chaos');
const BOOT_STEPS: readonly StackStep[] = ['artifacts', ...SERVER_NAMES];
const EXIT_RED = 1;

export interface OwnStackParts {
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
export async function onOwnStack<T>(
  { json, keep, say, signal }: OwnStackParts,
  work: (hands: StackHands, env: Environment) => Promise<T>,
): Promise<T> {
  const { stack, stop } = await showProgress(progressStyle(json === true), BOOT_STEPS, (onProgress) =>
    bootOwnStack({ dir: CHAOS_DIR, onProgress, signal }),
  );
  const stray = (error: unknown): void => {
    process.exitCode = EXIT_RED;
    say(`An error that belongs to no row: ${error instanceof Error ? error.stack : String(error)}`);
  };
  process.on('uncaughtException', stray).on('unhandledRejection', stray); // the servers must not be left running
  try {
    const hands = await openHands(stack.dir, stack.env());
    try {
      return await work(hands, { ...process.env, ...stack.env() });
    } finally {
      closeConnections();
      await hands.close();
    }
  } finally {
    await stop();
    if (!keep) rmSync(join(CHAOS_DIR, 'data'), { recursive: true, force: true });
  }
}

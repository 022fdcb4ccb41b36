import { rmSync } from 'node:fs';
import { migrate } from '../../src/mysql/migrate.js';
import { tryLock } from '../../deploy/local/stack/lock.js';
import type { OnProgress } from '../../deploy/local/stack/progress.js';
import { StackError } from '../../deploy/local/stack/stack-error.js';
import { openStack, type Stack } from '../../deploy/local/stack/stack.js';
import { createTopics } from './harness/broker-hands.js';
import { unmountBelow } from './harness/small-volume.js';

export interface ChaosStackParts {
  /** Folder of the instance; emptied first. */
  readonly dir: string;
  readonly onProgress: OnProgress;
  readonly signal: AbortSignal;
}

export interface OwnStack {
  readonly stack: Stack;
  /** Stops the servers, also those that were stopped with SIGSTOP. Their logs stay until the next boot. */
  stop(): Promise<void>;
}

/**
 * Boots an empty stack on free ports. When it fails, nothing of it runs on.
 * @throws StackError when it does not boot, or is in use by another process
 */
export async function bootOwnStack({ dir, onProgress, signal }: ChaosStackParts): Promise<OwnStack> {
  const lock = tryLock(`${dir}.lock`);
  if ('heldBy' in lock) throw new StackError(`Process ${lock.heldBy} runs on ${dir} already; wait for its end.`);
  const stop = async (): Promise<void> => {
    await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' }); // its data is not needed again
    lock.release();
  };
  try {
    // what an earlier run left is removed, so that no row depends on it
    await openStack({ dir, ports: 'free' }).down({ signal: 'SIGKILL' });
    unmountBelow(dir);
    rmSync(dir, { recursive: true, force: true });
    const stack = openStack({ dir, ports: 'free', onProgress });
    await stack.up({ topics: false, signal });
    await prepareStack(stack);
    signal.throwIfAborted();
    return { stack, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Topics, groups and schema, for a stack that has just been booted for tests or faults. */
export async function prepareStack(stack: Stack): Promise<void> {
  await createTopics(stack);
  await migrate({ url: stack.env().MYSQL_URL });
}

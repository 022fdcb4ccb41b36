import { openControls, type StackControls } from '../chaos/harness/stack-controls.js';
import { stackEnv } from './stack-env.js';

/** The servers of this test run, to read and break. */
export type TestStack = StackControls;

/**
 * Opens the stack that `npm test` started. Restarts servers that an earlier test left stopped.
 * @throws if the run has no private stack
 */
export async function openTestStack(): Promise<TestStack> {
  const dir = process.env.SECKILL_TEST_STACK;
  if (!dir) throw new Error('SECKILL_TEST_STACK is not set. Run `npm test`, which starts a stack of its own.');
  return openControls(dir, stackEnv());
}

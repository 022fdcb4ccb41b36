import { StackError } from '../stack/stack-error.js';

/** As a shell reports a program that Ctrl-C ended. */
const INTERRUPTED = 130;

/**
 * Runs work on the stack for a command. A StackError is one sentence and exit code 1. Ctrl-C and SIGTERM abort the
 * work, which tidies up after itself; a second one ends the process at once.
 */
export async function reportStackError(
  json: boolean | undefined,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  const interrupt = (): void =>
    controller.abort(new StackError('Interrupted; what had been started is stopped again.'));
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    await work(controller.signal);
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    process.exitCode = controller.signal.aborted ? INTERRUPTED : 1;
    if (json) process.stdout.write(`${JSON.stringify({ result: 'failed', error: error.message })}\n`);
    else console.error(`seckill: ${error.message}`);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

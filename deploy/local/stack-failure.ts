import { StackError } from './stack/stack-error.js';

/** As a shell reports a program that Ctrl-C ended. */
const INTERRUPTED = 130;
/** One Ctrl-C can arrive twice: from the terminal, and passed on by npm or tsx. */
const SAME_INTERRUPT_MS = 1_000;
/** SIGHUP: the terminal was closed. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs work on the stack for a command. A StackError is one sentence and exit code 1. Ctrl-C and SIGTERM abort the
 * work, which tidies up after itself; once more, a while later, leaves at once and says what may be left.
 */
export async function reportStackError(
  json: boolean | undefined,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const controller = new AbortController();
  let interruptedAtMs: number | null = null;
  const interrupt = (): void => {
    interruptedAtMs ??= performance.now();
    controller.abort(new StackError('Interrupted; what had been started is stopped again.'));
    if (performance.now() - interruptedAtMs <= SAME_INTERRUPT_MS) return;
    console.error('seckill: left at once. Servers may still run: npm run stack -- down stops them.');
    process.exit(INTERRUPTED);
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    await work(controller.signal);
  } catch (error) {
    if (!(error instanceof StackError)) throw error;
    process.exitCode = controller.signal.aborted ? INTERRUPTED : 1;
    if (json) process.stdout.write(`${JSON.stringify({ result: 'failed', error: error.message })}\n`);
    else console.error(`seckill: ${error.message}`);
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

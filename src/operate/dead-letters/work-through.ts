import { readResult, type DeadLetterAdmin, type DeadLetterResult, type Pace } from './dead-letter-admin.js';
import type { DiscardAnswer } from './discard-dead-letter.js';
import type { ReplayAnswer } from './replay-dead-letter.js';
import { inLine, print, printError } from '../../process/print.js';

export interface WorkOrder {
  readonly deadLetterIds: AsyncIterable<string> | Iterable<string>;
  readonly total: number;
  readonly pace: Pace;
  readonly json: boolean;
  readonly end: 'replayed' | 'discarded';
  readonly work: (deadLetterId: string, signal: AbortSignal) => Promise<ReplayAnswer | DiscardAnswer>;
}

/** The first Ctrl-C finishes work in progress, the second exits. @returns whether all reached the requested state */
export async function workThroughDeadLetters(admin: DeadLetterAdmin, order: WorkOrder): Promise<boolean> {
  const { json, end, total } = order;
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  process.once('SIGINT', stop).once('SIGTERM', stop);
  const counts = new Map<string, number>();
  const isTerminal = !json && process.stderr.isTTY;
  let handled = 0;
  let done = 0;
  const onResult = (result: DeadLetterResult): void => {
    const { word, note, isEnd } = readResult(result, end);
    counts.set(word, (counts.get(word) ?? 0) + 1);
    if (isEnd) done++;
    handled++;
    if (json) return print(JSON.stringify({ deadLetterId: result.deadLetterId, outcome: word, note }));
    if (isTerminal) process.stderr.write(isEnd ? `\r${handled} of ${total}` : '\r');
    if (isTerminal && isEnd) return;
    print(inLine(`${result.deadLetterId.padEnd(8)}  ${word.padEnd(16)}  ${note ?? ''}`.trimEnd()));
  };
  try {
    const work = (deadLetterId: string): Promise<ReplayAnswer | DiscardAnswer> =>
      order.work(deadLetterId, stopping.signal);
    await admin.workThrough(order.deadLetterIds, work, order.pace, onResult, stopping.signal);
  } finally {
    if (isTerminal && handled > 0) process.stderr.write('\n');
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
  const sum = [...counts].map(([word, count]) => `${count} ${word}`).join(', ');
  printError(`${total} requested: ${sum || 'nothing done'}.`);
  if (stopping.signal.aborted) printError('Stopped. Run the same command again to continue.');
  else if (counts.has('fault')) printError('A server failed. When it is back, run the same command again.');
  return done === total;
}

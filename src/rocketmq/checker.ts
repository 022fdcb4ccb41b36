import type { MessageView, TransactionChecker } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { assertNever } from '../core/errors.js';
import { OutageLog } from '../core/outage-log.js';
import type { ChannelMetrics } from './metrics.js';
import type { Log } from '../core/ports/log.js';
import type { CheckBack, CheckBackAnswer } from '../core/ports/channels.js';

// The client does not export this type.
const { TransactionResolution } = definition;
type Resolution = (typeof TransactionResolution)[keyof typeof TransactionResolution];

/** A check that does not fit is not lost: the broker asks again after its interval (5 s). */
const CHECKS_QUEUED_MAX = 1000;

/** Long, because several checks run at once. */
const CALM_MS = 10_000;

/** The part of a half message that a check reads. */
export type CheckedMessage = Pick<MessageView, 'messageId' | 'keys' | 'body' | 'properties'>;

export interface CheckerOptions {
  readonly checkBack: CheckBack;
  /** Number of check-backs that run at once. The broker sends all due check-backs together. */
  readonly checksInParallel: number;
  readonly log: Log;
  readonly metrics: ChannelMetrics;
}

/**
 * The client starts all checks at once and only logs a rejection. The wrapper limits the parallel checks, skips a
 * message that already waits, and turns a throw into `no_answer`.
 */
export function createChecker(options: CheckerOptions): TransactionChecker {
  const { checkBack, log, metrics } = options;
  const limiter = new KeyedLimiter(options.checksInParallel, CHECKS_QUEUED_MAX);
  const messages = {
    begins: 'check-back failed; the broker checks back again',
    ends: 'check-backs are answered again',
  };
  const outage = new OutageLog(log, messages, {}, CALM_MS);
  const check = async (view: CheckedMessage): Promise<Resolution> => {
    let answer: CheckBackAnswer;
    try {
      const { messageId, properties } = view;
      const half = { messageId, properties, body: view.body.toString('utf8') };
      const result = await limiter.run(messageId, () => checkBack(half));
      answer = result === 'skipped' ? 'no_answer' : result;
      outage.end();
    } catch (error) {
      const [batchId, ...traceIds] = view.keys;
      const named = traceIds.length === 0 ? { batchId } : { batchId, traceIds };
      outage.failed(error, named);
      answer = 'no_answer';
    }
    metrics.checkedBack(answer);
    return resolutionOf(answer);
  };
  return { check };
}

function resolutionOf(answer: CheckBackAnswer): Resolution {
  switch (answer) {
    case 'commit':
      return TransactionResolution.COMMIT;
    case 'rollback':
      return TransactionResolution.ROLLBACK;
    case 'no_answer':
      return TransactionResolution.TRANSACTION_RESOLUTION_UNSPECIFIED;
    default:
      return assertNever(answer);
  }
}

/** Runs at most `parallel` jobs, with at most `queued` waiting and one per key. */
export class KeyedLimiter {
  readonly #keys = new Set<string>();
  readonly #waiting: (() => void)[] = [];
  readonly #parallel: number;
  readonly #queued: number;
  #running = 0;

  constructor(parallel: number, queued: number) {
    this.#parallel = parallel;
    this.#queued = queued;
  }

  /** Rejects if the job rejects. @returns `skipped` if a job with this key is under way or the queue is full */
  async run<T>(key: string, job: () => Promise<T>): Promise<T | 'skipped'> {
    if (this.#keys.has(key)) return 'skipped';
    if (this.#running >= this.#parallel && this.#waiting.length >= this.#queued) return 'skipped';
    this.#keys.add(key);
    try {
      if (this.#running >= this.#parallel) await new Promise<void>((start) => this.#waiting.push(start));
      else this.#running += 1;
      return await job();
    } finally {
      this.#keys.delete(key);
      const next = this.#waiting.shift();
      if (next) next(); // the next job takes over this slot
      else this.#running -= 1;
    }
  }
}

import type { MessageView, TransactionChecker } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import { assertNever } from '../core/errors.js';
import type { ChannelMetrics } from '../core/ports/channel-metrics.js';
import type { Log } from '../core/ports/log.js';
import type { CheckBack, CheckBackAnswer } from '../core/ports/channels.js';
import { KeyedLimiter } from './limiter.js';

// The client does not export it.
const { TransactionResolution } = definition;
type Resolution = (typeof TransactionResolution)[keyof typeof TransactionResolution];

/** The broker asks again after its interval (5 s), so what does not fit here is not lost, only later. */
const CHECKS_QUEUED_MAX = 1000;

/** What a check reads of a half message. */
export type CheckedMessage = Pick<MessageView, 'messageId' | 'keys' | 'body'>;

export interface CheckerOptions {
  readonly checkBack: CheckBack;
  /** How many check-backs run at once; the broker sends all that are due in one go. */
  readonly checksInParallel: number;
  readonly log: Log;
  readonly metrics: Pick<ChannelMetrics, 'checkedBack'>;
}

/**
 * Wraps the check-back for the client, which starts all questions at once and only logs a rejection: here they are
 * limited in parallel, a message that waits is not taken twice, and a throw is no answer.
 */
export function createChecker(options: CheckerOptions): TransactionChecker {
  const { checkBack, log, metrics } = options;
  const limiter = new KeyedLimiter(options.checksInParallel, CHECKS_QUEUED_MAX);
  const check = async (view: CheckedMessage): Promise<Resolution> => {
    let answer: CheckBackAnswer;
    try {
      const body = view.body.toString('utf8');
      const result = await limiter.run(view.messageId, () => checkBack(body));
      answer = result === 'skipped' ? 'no_answer' : result;
    } catch (error) {
      log.warn({ batchId: view.keys[0], err: error }, 'check-back failed, the broker will ask again');
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

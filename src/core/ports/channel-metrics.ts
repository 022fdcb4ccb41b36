import type { CheckBackAnswer } from './channels.js';

/** What became of one try to store a half message. */
type HalfSendOutcome = 'stored' | 'unavailable' | 'outcome_unknown';

/** What the purchase channel counts. Each call is one increment and must not throw. */
export interface ChannelMetrics {
  /** @param elapsedMs from the call to its answer */
  halfSent(outcome: HalfSendOutcome, elapsedMs: number): void;
  /** The broker asked and got this answer. */
  checkedBack(answer: CheckBackAnswer): void;
  /** The broker did not say OK to the end of a half message; a check-back follows. */
  endFailed(verb: 'commit' | 'rollback'): void;
}

/** For tests and for processes that publish no metrics. */
export const silentChannelMetrics: ChannelMetrics = {
  halfSent: () => undefined,
  checkedBack: () => undefined,
  endFailed: () => undefined,
};

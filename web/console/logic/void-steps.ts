import type { VoidStep } from '../api/types.js';

/** Orders and money that the steps of a void have moved so far, or would move. */
export interface Voided {
  readonly cancelled: number;
  readonly refunding: number;
  readonly refundCents: number;
  /** Where the next step begins. Null before the first and after the last. */
  readonly after: string | null;
}

export const NOTHING_VOIDED: Voided = { cancelled: 0, refunding: 0, refundCents: 0, after: null };
export const ordersIn = ({ cancelled, refunding }: Voided): number => cancelled + refunding;

/**
 * Runs the steps of a void one after another.
 * @param step asks the API for the step that begins there
 * @param from where to continue
 * @param onStep called after each step; its last sum holds even if a later step fails
 * @param isStopped asked before each further step
 */
export async function takeVoidSteps(
  step: (after: string | null) => Promise<VoidStep>,
  from: Voided,
  onStep: (voided: Voided) => void,
  isStopped: () => boolean,
): Promise<Voided> {
  let sum = from;
  do {
    const { cancelled, refunding, refundCents, next } = await step(sum.after);
    sum = {
      cancelled: sum.cancelled + cancelled,
      refunding: sum.refunding + refunding,
      refundCents: sum.refundCents + refundCents,
      after: next,
    };
    onStep(sum);
  } while (sum.after !== null && !isStopped());
  return sum;
}

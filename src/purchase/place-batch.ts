import { newBatchId, sealBatch, type Batch } from '../core/batch.js';
import { assertNever } from '../core/errors.js';
import type { PurchaseOutcome } from '../core/outcome.js';
import type { Purchase } from '../core/purchase.js';
import type { Clock } from '../core/ports/clock.js';
import type { HalfMessage, PurchaseChannel } from '../core/ports/channels.js';
import type { BatchVerdict } from '../core/ports/purchase-metrics.js';
import type { AskedBucket, DeductVerdict, StockStore } from '../core/ports/stock-store.js';

export interface PlaceBatchPorts {
  readonly store: Pick<StockStore, 'precheck' | 'deduct' | 'resolve'>;
  readonly channel: PurchaseChannel;
  readonly clock: Clock;
}

/** Tells the buyer of purchase `index` how it ended. Called at most once per purchase, as soon as it is known. */
export type Reply = (index: number, outcome: PurchaseOutcome) => void;

export interface PlacedBatch {
  readonly verdict: BatchVerdict;
  /** Indexes that got no answer: nothing was taken for them, and they may go into another batch. */
  readonly again: readonly number[];
  /** Units left as precheck saw them; null when it could not know. */
  readonly unitsLeft: number | null;
  /** The sale has another number of buckets than its card says; absent: it has not, or nobody knows. */
  readonly isResharded?: boolean;
}

/** Pauses before each try of `resolve` after a lost reply: at once, then time for a reconnect. */
const DECIDE_PAUSES_MS = [0, 100, 400];

/**
 * Takes purchases of one sale and bucket from precheck to their last word: half message, deduct, commit or rollback.
 * @throws OperationalError when precheck finds no ledger; nobody was answered and nothing was taken
 * Source: protocol rules 1 to 4
 */
export async function placeBatch(
  ref: AskedBucket,
  purchases: readonly Purchase[],
  trace: string,
  reply: Reply,
  ports: PlaceBatchPorts,
): Promise<PlacedBatch> {
  const { epoch, unitsLeft, buckets, answers } = await ports.store.precheck(ref, purchases);
  const survivors: number[] = [];
  answers.forEach((answer, index) => (answer === null ? survivors.push(index) : reply(index, answer)));
  const end = (verdict: BatchVerdict, again: readonly number[] = []): PlacedBatch => ({ verdict, again, unitsLeft });
  if (survivors.length === 0) return { ...end('all_answered_by_precheck'), ...reshardedSince(ref, buckets) };

  const createdAtMs = ports.clock.nowMs();
  const batch = formBatch({ ...ref, epoch, trace, createdAtMs }, purchases, survivors);
  const replyToAll = (outcome: PurchaseOutcome): void => survivors.forEach((index) => reply(index, outcome));
  const unknown = (): PlacedBatch => {
    replyToAll({ outcome: 'outcome_unknown' });
    return end('outcome_unknown');
  };
  const half = await ports.channel.sendHalf(batch);
  if (half === 'unavailable' || half === 'outcome_unknown') {
    replyToAll({ outcome: half });
    return end(half);
  }

  const verdict = await deduct(batch, ports);
  switch (verdict.outcome) {
    case 'deducted':
    case 'already_deducted':
      replyToAll({ outcome: 'accepted' }); // the units are held, whatever the commit says
      await half.commit();
      return end('accepted');
    case 'refused': {
      if (!(await isUndone(batch, half, ports))) return unknown();
      const again: number[] = [];
      verdict.answers.forEach((answer, place) => {
        const index = survivors[place] as number;
        if (answer === null) again.push(index);
        else reply(index, answer);
      });
      return end('refused', again);
    }
    case 'aborted':
      if (!(await isUndone(batch, half, ports))) return unknown();
      return end('aborted', survivors); // the next precheck tells each buyer why
    case 'stale_epoch':
    case 'not_warmed':
      // No marker says so: a check-back that came first has had the batch committed.
      replyToAll({ outcome: 'outcome_unknown' });
      await half.rollback();
      return end('outcome_unknown');
    case 'claimed': // orders will come, but one of them may have lost its unit: no 202
    case 'unreplicated': // the broker will remember the batch, but until then a fail-over could forget it: no 202
      replyToAll({ outcome: 'outcome_unknown' });
      await half.commit();
      return end('outcome_unknown');
    case 'outcome_unknown': // neither commit nor rollback: the broker asks later and decide answers
      return unknown();
    default:
      return assertNever(verdict);
  }
}

/**
 * Empty, so that it adds nothing, for a sale that has as many buckets as its card says. Buckets only become more: fewer are
 * those of a bucket that a scatter has not come to yet, and the card is right.
 */
function reshardedSince(ref: AskedBucket, buckets: number | null): { readonly isResharded?: true } {
  return ref.buckets === undefined || buckets === null || buckets <= ref.buckets ? {} : { isResharded: true };
}

function formBatch(
  head: Omit<Batch, 'batchId' | 'purchases' | 'body'>,
  purchases: readonly Purchase[],
  survivors: readonly number[],
): Batch {
  const all = survivors.length === purchases.length;
  return sealBatch({
    ...head,
    batchId: newBatchId(),
    purchases: all ? purchases : survivors.map((index) => purchases[index] as Purchase),
  });
}

/** The deduct; when its reply is lost, the marker says what became of it. */
async function deduct(batch: Batch, { store, clock }: PlaceBatchPorts): Promise<DeductVerdict> {
  const verdict = await store.deduct(batch);
  if (verdict.outcome !== 'outcome_unknown') return verdict;
  for (const pauseMs of DECIDE_PAUSES_MS) {
    if (pauseMs > 0) await clock.sleep(pauseMs);
    const decided = await store.resolve(batch);
    if (decided === 'no_answer' || decided === 'outlived') break; // the broker will ask, when it is known what was lost
    if (decided !== 'outcome_unknown') return { outcome: decided };
  }
  return { outcome: 'outcome_unknown' };
}

/**
 * Nobody hears a no, or tries again, before the broker has confirmed the rollback, and the marker says `aborted` still: if
 * Redis lost it meanwhile, a check-back may have had the batch committed, and the broker confirms a late rollback all the
 * same (protocol rule 3).
 */
async function isUndone(batch: Batch, half: HalfMessage, { store }: PlaceBatchPorts): Promise<boolean> {
  return (await half.rollback()) && (await store.resolve(batch)) === 'aborted';
}

import { STAGES, type Stage } from '../../contract/traces.js';
import { mintedAtMs } from '../../core/order-id.js';
import type { TracedMessage } from '../../rocketmq/admin/trace-broker.js';
import type { PurchaseEvidence } from './evidence.js';
import type { StandingLimits } from './standing-of.js';

export interface TimelineStage {
  readonly stage: Stage['stage'];
  readonly state: Stage['state'];
  /** Unix ms on the clock of its source. Null if the time is not stored or not known. */
  readonly atMs: number | null;
  /** Latest time of the stage or of its next attempt. Null if unknown, or if nothing will happen. */
  readonly dueAtMs: number | null;
  readonly text: string;
}

type Outcome = Omit<TimelineStage, 'stage'>;

const outcome = (state: Outcome['state'], text: string, atMs: number | null = null): Outcome => ({
  state,
  text,
  atMs,
  dueAtMs: null,
});
const waiting = (text: string, dueAtMs: number | null): Outcome => ({ state: 'waiting', text, atMs: null, dueAtMs });

/** Shows a purchase as seven stages, for a diagram. The first stage that is waiting is the next to happen. */
export function timelineOf(evidence: PurchaseEvidence, limits: StandingLimits): TimelineStage[] {
  const facts = factsOf(evidence, limits);
  const outcomes: Readonly<Record<TimelineStage['stage'], Outcome>> = {
    half: halfOf(facts),
    deduct: deductOf(facts),
    commit: commitOf(facts),
    delivery: deliveryOf(facts),
    row: rowOf(facts),
    payment: paymentOf(facts),
    notification: notificationOf(facts),
  };
  return STAGES.map((stage) => ({ stage, ...outcomes[stage] }));
}

type Facts = ReturnType<typeof factsOf>;

function factsOf(evidence: PurchaseEvidence, { redriveAfterMs }: StandingLimits) {
  const { store, repository, deadLetters, broker, silentBrokers } = evidence;
  const { order, outboxRows } = repository;
  const { batch, entry } = store;
  const parked = deadLetters.find(({ state }) => state === 'parked');
  const pendingSinceMs = batch?.pendingSinceMs ?? null;
  const messages = typeof broker === 'string' ? [] : broker;
  return {
    order,
    outboxRows,
    parked,
    messages,
    /** Whether every broker has reported its messages. */
    areAllMessages: typeof broker !== 'string' && silentBrokers.length === 0,
    isRolledBack: batch?.marker === 'aborted' && order === null,
    isHeld: entry !== null || order !== null || parked !== undefined,
    unsure: store.unsure,
    pendingSinceMs,
    redriveAtMs: pendingSinceMs === null ? null : pendingSinceMs + redriveAfterMs,
  };
}

const firstOf = (messages: readonly TracedMessage[], kinds: readonly TracedMessage['kind'][]): number | null => {
  const stored = messages.filter(({ kind }) => kinds.includes(kind)).map(({ storedAtMs }) => storedAtMs);
  return stored.length === 0 ? null : Math.min(...stored);
};

function halfOf({ messages, isHeld, isRolledBack }: Facts): Outcome {
  const atMs = firstOf(messages, ['half']);
  if (atMs !== null) return outcome('done', 'The broker has stored the half message of its batch.', atMs);
  if (isHeld || isRolledBack) return outcome('done', 'The api sent the half message before it took the units.');
  return outcome('unknown', 'No store knows a batch with this purchase.');
}

function deductOf({ isHeld, isRolledBack, pendingSinceMs, unsure }: Facts): Outcome {
  if (isHeld) return outcome('done', 'Redis took the units of its batch.', pendingSinceMs);
  if (isRolledBack) return outcome('failed', 'The batch was rolled back: no unit was held for it.');
  if (unsure) return outcome('unknown', 'Redis may have lost data of its sale, which waits for a repair.');
  return outcome('not_reached', 'Redis holds no units for it.');
}

function commitOf({ messages, areAllMessages, order, parked, isHeld, isRolledBack, redriveAtMs }: Facts): Outcome {
  if (isRolledBack) return outcome('not_reached', 'A rolled back half message is dropped.');
  const atMs = firstOf(messages, ['committed', 'redriven']);
  if (atMs !== null) return outcome('done', 'The message of its batch is visible to workers.', atMs);
  if (order !== null || parked !== undefined) return outcome('done', 'A worker received the message.');
  if (!isHeld) return outcome('not_reached', 'There is nothing to commit.');
  if (!areAllMessages) return outcome('unknown', 'The broker did not answer, or was not asked.');
  return waiting('The broker checks back with an api, or the keeper publishes the batch again.', redriveAtMs);
}

/** Maximum difference from the clock of MySQL. Beyond it, a worker's clock says nothing about this order. */
const CLOCKS_APART_MAX_MS = 60_000;

function deliveryOf({ order, parked, isHeld, isRolledBack, redriveAtMs }: Facts): Outcome {
  if (order !== null) {
    const mintedMs = mintedAtMs(order.orderId);
    const isOfThen = Math.abs(order.createdAtMs - mintedMs) < CLOCKS_APART_MAX_MS;
    return outcome('done', 'A worker has read the batch.', isOfThen ? mintedMs : null);
  }
  if (parked !== undefined) {
    return outcome('failed', `A worker read the batch ${parked.attempts} times and gave up.`, parked.parkedAtMs);
  }
  if (isHeld) return waiting('A worker reads the batch, or the keeper publishes it again.', redriveAtMs);
  return outcome(
    'not_reached',
    isRolledBack ? 'A rolled back batch is not visible to workers.' : 'Nothing was committed.',
  );
}

function rowOf({ order, parked, isHeld, redriveAtMs }: Facts): Outcome {
  if (order !== null) {
    const { orderId, state, reason, createdAtMs } = order;
    if (state === 'failed') return outcome('failed', `Order ${orderId} failed: ${reason ?? 'no reason'}.`, createdAtMs);
    return outcome('done', `Order ${orderId} is in MySQL.`, createdAtMs);
  }
  if (parked !== undefined)
    return waiting(`An operator must replay or discard dead letter ${parked.deadLetterId}.`, null);
  if (isHeld) return waiting('The worker writes the order.', redriveAtMs);
  return outcome('not_reached', 'There is no order.');
}

function paymentOf({ order }: Facts): Outcome {
  if (order === null || order.state === 'failed') return outcome('not_reached', 'There is nothing to pay.');
  switch (order.state) {
    case 'paid':
      return outcome('done', 'The order is paid.', order.paidAtMs);
    case 'refunding':
      return outcome('done', 'The order is paid, and a refund is under way.', order.paidAtMs);
    case 'refunded':
    case 'returned': {
      const part = order.refundedCents < order.amountCents ? ' in part' : '';
      return outcome('done', `The order was paid, and refunded${part}.`, order.paidAtMs);
    }
    case 'disputed':
      return outcome('done', "The order is paid, and the buyer's bank disputes it.", order.paidAtMs);
    case 'pending_payment':
      return waiting('The buyer pays, or the order expires and its units go back.', order.expiresAtMs);
    case 'cancelled':
    case 'expired':
      return outcome('failed', `The order is ${order.state}, and its units go back.`, order.updatedAtMs);
  }
}

/** Waiting buyers get a notification at once. Services get events, which the outbox keeps until sent. */
function notificationOf({ order, outboxRows }: Facts): Outcome {
  if (order === null) return outcome('not_reached', 'There is no order to announce.');
  const events = outboxRows.filter(({ kind }) => kind !== 'release');
  const open = events.find(({ doneAtMs }) => doneAtMs === null);
  if (open !== undefined) {
    return waiting(`The keeper sends its event, after ${open.attempts} attempts so far.`, open.availableAtMs);
  }
  const doneMs = events.map(({ doneAtMs }) => doneAtMs ?? 0);
  if (doneMs.length === 0) return outcome('done', 'Its events were sent; the outbox no longer has their rows.');
  return outcome('done', 'Its events were sent.', Math.max(...doneMs));
}

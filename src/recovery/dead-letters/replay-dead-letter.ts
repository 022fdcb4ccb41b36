import { decodeBatch, type Batch } from '../../core/batch.js';
import { assertNever } from '../../core/errors.js';
import { isLive, type Order } from '../../core/order.js';
import { GROUP_TOPICS, TOPICS, type Topic } from '../../core/topics.js';
import type { Clock } from '../../core/ports/clock.js';
import type { DeadLetterRepository, StoredDeadLetter } from '../../core/ports/dead-letter-repository.js';
import type { OrderRepository } from '../../core/ports/order-repository.js';
import type { RedriveChannel } from '../../core/ports/purchase-channel.js';
import type { BatchStore } from '../../core/ports/batch-store.js';
import { followUntil } from './follow-until.js';
import { closeReplayed, type ReplayAnswer, type ReplayOptions } from './replay-answer.js';
import { replayMessage, type ReplayMessagePorts } from './replay-message.js';

export interface ReplayPorts extends ReplayMessagePorts {
  readonly deadLetters: Pick<DeadLetterRepository, 'find' | 'beginReplay' | 'close' | 'keepParked'>;
  readonly store: Pick<BatchStore, 'unpark' | 'settle'>;
  readonly repository: Pick<OrderRepository, 'findByPurchases'>;
  readonly channel: RedriveChannel;
  readonly clock: Clock;
}

/** The topic of a letter's group, as far as we know the group. */
const TOPIC_OF: ReadonlyMap<string, Topic> = new Map(Object.entries(GROUP_TOPICS));

/**
 * Replays one parked letter: a batch goes to the workers again, what follows from orders to its own topic.
 * @throws OperationalError; the letter is still `parked` and may be replayed again
 */
export async function replayDeadLetter(
  deadLetterId: string,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const deadLetter = await ports.deadLetters.find(deadLetterId);
  if (deadLetter === null) return { outcome: 'not_found' };
  if (deadLetter.state !== 'parked') return { outcome: 'already_closed', state: deadLetter.state };
  const topic = TOPIC_OF.get(deadLetter.group);
  if (topic === TOPICS.paymentDeadline || topic === TOPICS.orderEvent) {
    return replayMessage(topic, deadLetter, ports, options);
  }
  return replayBatch(deadLetter, ports, options);
}

/**
 * Sends one parked batch to the workers again and follows it to its rows. Safe to repeat after a death at any point:
 * the batch is in `pending` before it is published (protocol rule 8), so it can't get lost, and rows that are there are
 * found before anything is published.
 * @throws OperationalError; the letter is still `parked` and may be replayed again
 */
async function replayBatch(
  { deadLetterId, body }: StoredDeadLetter,
  ports: ReplayPorts,
  options: ReplayOptions,
): Promise<ReplayAnswer> {
  const kept = async (outcome: 'unreadable' | 'not_held' | 'unfinished', note: string): Promise<ReplayAnswer> => {
    await ports.deadLetters.keepParked(deadLetterId, options.actor, note);
    return { outcome, note };
  };
  const decoded = decodeBatch(body);
  if (decoded.outcome !== 'decoded') return kept('unreadable', `no batch, cannot be replayed: ${decoded.detail}`);
  const { batch } = decoded;

  const before = await rowsOf(batch, ports);
  if (before !== null && before.every((row) => row.batchId === batch.batchId)) {
    return closed(deadLetterId, batch, before, 'already_recorded', ports, options);
  }
  await ports.deadLetters.beginReplay(deadLetterId, options.actor);
  const word = await ports.store.unpark(batch);
  switch (word) {
    case 'unparked':
    case 'already_pending':
      await ports.channel.publish(batch);
      break;
    case 'settled':
    case 'aborted':
    case 'unknown':
      if (before !== null) return closed(deadLetterId, batch, before, 'already_recorded', ports, options);
      return kept('not_held', `its units are not held (${word}), cannot be replayed`);
    default:
      return assertNever(word);
  }
  const rows = await followUntil(
    () => rowsOf(batch, ports),
    (found) => found !== null,
    ports.clock,
    options,
  );
  if (rows !== null) return closed(deadLetterId, batch, rows, 'replayed', ports, options);
  return kept('unfinished', `published again, not every purchase has its row yet`);
}

/** The rows of the batch; null while a purchase has none. */
async function rowsOf(batch: Batch, { repository }: ReplayPorts): Promise<Order[] | null> {
  const rows = await repository.findByPurchases(batch.saleId, batch.purchases);
  return rows.length === batch.purchases.length ? rows : null;
}

/** The ledger is told as well where a worker may not have done it: then the batch is in no list that a keeper reads. */
async function closed(
  deadLetterId: string,
  batch: Batch,
  rows: readonly Order[],
  outcome: 'replayed' | 'already_recorded',
  { deadLetters, store }: ReplayPorts,
  { actor }: ReplayOptions,
): Promise<ReplayAnswer> {
  const live = rows.filter((row) => isLive(row.state));
  if (outcome === 'already_recorded') await store.settle([{ batch, orders: live }]);
  const when = outcome === 'replayed' ? 'recorded' : 'had been recorded before';
  const note = `${when}: ${live.length} live, ${rows.length - live.length} ended`;
  return closeReplayed(deadLetterId, outcome, note, deadLetters, actor);
}

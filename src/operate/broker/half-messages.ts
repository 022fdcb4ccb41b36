import type { DiscardedHalf, HalfMessage } from '../../contract/broker.js';
import { decodeBatch } from '../../core/batch.js';
import { HALF_TOPICS } from '../../core/topics.js';
import type { BrokerAddress } from '../../rocketmq/admin/broker-state.js';
import type { StoredMessage } from '../../rocketmq/admin/decode-messages.js';
import {
  readGroupQueues,
  readMessagesOfId,
  readMessagesOfKey,
  readQueues,
  walkQueue,
} from '../../rocketmq/admin/inspect-broker.js';
import { askRemoting, REQUEST } from '../../rocketmq/admin/remoting.js';
import type { OpenHalves } from './message-inspection.js';

/** Topics in which the broker keeps half messages, and the answers to them, until it has processed both. */
const HALVES = HALF_TOPICS.open;
const ANSWERS = 'RMQ_SYS_TRANS_OP_HALF_TOPIC';
/** The broker's own group, which reads both topics. */
const HALVES_GROUP = 'CID_RMQ_SYS_TRANS';
/** Topic into which the broker puts half messages after too many check-backs. */
const DISCARDED = HALF_TOPICS.discarded;
/** Maximum number of half messages and answers that are examined per broker and inspection. */
const HALVES_MAX = 20_000;

/**
 * The broker reads half messages in order. Half messages that it has not passed are open, unless an unprocessed answer
 * exists. A check-back stores a copy at the end. Both copies count once, and an answer to either ends it.
 */
export async function openHalves(brokers: readonly BrokerAddress[]): Promise<OpenHalves> {
  const nowMs = Date.now();
  const open: HalfMessage[] = [];
  let more = false;
  for (const broker of brokers) {
    const answered = new Set<number>();
    for (const { queueId, given, end } of await readGroupQueues(broker, HALVES_GROUP, ANSWERS)) {
      more ||= end - given > HALVES_MAX;
      const range = { from: given, end: Math.min(end, given + HALVES_MAX) };
      for await (const { body } of walkQueue(broker, ANSWERS, queueId, range)) {
        for (const offset of body.toString('utf8').split(',')) if (offset !== '') answered.add(Number(offset));
      }
    }
    for (const { queueId, given, end } of await readGroupQueues(broker, HALVES_GROUP, HALVES)) {
      more ||= end - given > HALVES_MAX;
      const range = { from: given, end: Math.min(end, given + HALVES_MAX) };
      open.push(...(await openInQueue(broker, queueId, range, answered, nowMs)));
    }
  }
  return { open: open.sort((one, other) => other.ageMs - one.ageMs), more };
}

interface Range {
  readonly from: number;
  readonly end: number;
}

/** Reads unanswered half messages only, because bodies are long. If one was checked back, reads all, for its copy. */
async function openInQueue(
  broker: BrokerAddress,
  queueId: number,
  range: Range,
  answered: ReadonlySet<number>,
  nowMs: number,
): Promise<HalfMessage[]> {
  const open = new Map<string, HalfMessage>();
  for (const part of unanswered(range, answered)) {
    for await (const message of walkQueue(broker, HALVES, queueId, part)) {
      if (answered.has(message.queueOffset)) continue;
      const half = halfOf(broker, message, nowMs);
      open.set(half.messageId, half); // a later copy has been checked more often
    }
  }
  if ([...open.values()].some(({ checks }) => checks > 0)) {
    for await (const { queueOffset, properties } of walkQueue(broker, HALVES, queueId, range)) {
      if (answered.has(queueOffset)) open.delete(properties.UNIQ_KEY ?? '');
    }
  }
  return [...open.values()];
}

/** Reading up to this many answered half messages costs less than another request to the broker. */
const GAP_MAX = 16;

/** Returns the parts of a range that contain unanswered half messages. */
export function unanswered({ from, end }: Range, answered: ReadonlySet<number>): Range[] {
  const parts: { from: number; end: number }[] = [];
  for (let offset = from; offset < end; offset++) {
    if (answered.has(offset)) continue;
    const last = parts.at(-1);
    if (last !== undefined && offset - last.end <= GAP_MAX) last.end = offset + 1;
    else parts.push({ from: offset, end: offset + 1 });
  }
  return parts;
}

/** Returns the newest first. @param which the newest `max` that the brokers still keep, or all with a key */
export async function discardedHalves(
  brokers: readonly BrokerAddress[],
  which: { readonly max: number } | { readonly key: string },
): Promise<DiscardedHalf[]> {
  const found: DiscardedHalf[] = [];
  for (const broker of brokers) {
    const halves =
      'key' in which
        ? (await readMessagesOfKey(broker, DISCARDED, which.key)).map((message) => discardedHalf(broker, message))
        : await newestDiscarded(broker, which.max);
    for (const half of halves) found.push({ ...half, resumedAtMs: await resumedAtMs(broker, half) });
  }
  found.sort((one, other) => other.discardedAtMs - one.discardedAtMs);
  return 'max' in which ? found.slice(0, which.max) : found;
}

type Discarded = Omit<DiscardedHalf, 'resumedAtMs'>;

/** Drops each body at once, because hundreds are read, and a body may have 4 MiB. */
async function newestDiscarded(broker: BrokerAddress, max: number): Promise<Discarded[]> {
  const halves: Discarded[] = [];
  for (const { queueId, first, end } of await readQueues(broker, DISCARDED)) {
    const range = { from: Math.max(first, end - max), end };
    for await (const message of walkQueue(broker, DISCARDED, queueId, range))
      halves.push(discardedHalf(broker, message));
  }
  return halves.sort((one, other) => other.discardedAtMs - one.discardedAtMs).slice(0, max);
}

const discardedHalf = (broker: BrokerAddress, message: StoredMessage): Discarded => ({
  ...halfOf(broker, message, Date.now()),
  discardedAtMs: message.storedAtMs,
  offsetId: message.offsetId,
});

async function resumedAtMs(broker: BrokerAddress, { messageId, discardedAtMs }: Discarded): Promise<number | null> {
  const copies = messageId === '' ? [] : await readMessagesOfId(broker, HALVES, messageId);
  return copies.find(({ storedAtMs }) => storedAtMs >= discardedAtMs)?.storedAtMs ?? null;
}

/** Reopens a half message, so that the broker asks for its outcome in its next round. @throws RemotingError */
export async function resumeHalf(broker: BrokerAddress, { offsetId }: DiscardedHalf): Promise<void> {
  await askRemoting(broker, REQUEST.resumeCheckHalf, '', { topic: DISCARDED, msgId: offsetId });
}

function halfOf({ name }: BrokerAddress, { properties, bornAtMs, body }: StoredMessage, nowMs: number): HalfMessage {
  const decoded = decodeBatch(body.toString('utf8'));
  const batch = decoded.outcome === 'decoded' ? decoded.batch : null;
  return {
    broker: name,
    topic: properties.REAL_TOPIC ?? '',
    key: batch?.batchId ?? properties.KEYS ?? '', // the keys of a batch include trace ids
    messageId: properties.UNIQ_KEY ?? '',
    ageMs: Math.max(0, nowMs - bornAtMs),
    checks: Number(properties.TRANSACTION_CHECK_TIMES ?? 0),
    saleId: batch?.saleId ?? null,
    purchases: batch?.purchases.length ?? null,
  };
}

import { withoutUndefined } from '../../core/without-undefined.js';
import { decodeMessages, type StoredMessage } from './decode-messages.js';
import { readOffsetTable } from './offset-tables.js';
import {
  askForSome,
  askRemoting,
  exchange,
  NOBODY_ONLINE,
  NOT_FOUND,
  parseAnswer,
  refusal,
  REQUEST,
  TOPIC_NOT_FOUND,
  type RemotingAddress,
} from './remoting.js';

// Requests of an inspection to a single broker. They change nothing, and throw a RemotingError if the broker does not
// answer or refuses.

export interface QueueEnds {
  readonly queueId: number;
  /** Offset of the oldest message that is kept. `end` is the offset after the newest message. */
  readonly first: number;
  readonly end: number;
  /** When the newest message was stored, Unix ms. 0 if no messages are kept. */
  readonly lastStoredAtMs: number;
}

/** A queue as a group reads it. With pop consumption, a message is given to a consumer before it is acked. */
export interface GroupQueue {
  readonly topic: string;
  readonly queueId: number;
  readonly end: number;
  /** Offset after the last message given to a consumer. */
  readonly given: number;
}

export interface BrokerClient {
  readonly clientId: string;
  readonly address: string;
  readonly language: string;
}

export interface ProducerClient extends BrokerClient {
  /** Producer group. Our client uses the topic as its name. */
  readonly group: string;
}

/** Returns an empty list if the broker does not have the topic. */
export async function readQueues(broker: RemotingAddress, topic: string): Promise<QueueEnds[]> {
  const answer = await askForSome(broker, REQUEST.topicStats, { topic }, [TOPIC_NOT_FOUND]);
  if (answer === null) return [];
  return readOffsetTable(answer.body, ['minOffset', 'maxOffset', 'lastUpdateTimestamp'])
    .map(({ queueId, figures }) => ({
      queueId,
      first: figures.minOffset as number,
      end: figures.maxOffset as number,
      lastStoredAtMs: figures.lastUpdateTimestamp as number,
    }))
    .sort((one, other) => one.queueId - other.queueId);
}

/**
 * @param topic if absent, every topic that the group has read
 * @param none codes that mean an empty result; without any, a topic that the broker lacks is an error
 */
export async function readGroupQueues(
  broker: RemotingAddress,
  group: string,
  topic?: string,
  none: readonly number[] = [TOPIC_NOT_FOUND],
): Promise<GroupQueue[]> {
  const fields = { consumerGroup: group, ...withoutUndefined({ topic }) };
  const answer = await askForSome(broker, REQUEST.consumeStats, fields, none);
  if (answer === null) return [];
  return readOffsetTable(answer.body, ['brokerOffset', 'consumerOffset']).map(
    ({ topic: ofTopic, queueId, figures }) => ({
      topic: ofTopic,
      queueId,
      end: figures.brokerOffset as number,
      given: figures.consumerOffset as number,
    }),
  );
}

/** A group that every broker has and with which no client consumes. */
const READER = 'TOOLS_CONSUMER';
const WITH_SUBSCRIPTION = '4';
const [NOTHING_THERE, NOTHING_FITS, OFFSET_MOVED] = [19, 20, 21] as const;

/** Reads up to `max` messages from an offset, without moving any group's offset. Empty if none is kept there. */
export async function readMessages(
  broker: RemotingAddress,
  topic: string,
  { queueId, offset, max }: { readonly queueId: number; readonly offset: number; readonly max: number },
): Promise<StoredMessage[]> {
  const fields = {
    consumerGroup: READER,
    topic,
    queueId: String(queueId),
    queueOffset: String(offset),
    maxMsgNums: String(max),
    sysFlag: WITH_SUBSCRIPTION,
    commitOffset: '0',
    suspendTimeoutMillis: '0',
    subscription: '*',
    subVersion: '0',
    expressionType: 'TAG',
  };
  const none = [NOTHING_THERE, NOTHING_FITS, OFFSET_MOVED, TOPIC_NOT_FOUND];
  const answer = await askForSome(broker, REQUEST.pullMessage, fields, none);
  return answer === null ? [] : decodeMessages(answer.bytes);
}

const PULL_MAX = 32;

/** Yields the messages of a queue from an offset up to, but not including, `end`. */
export async function* walkQueue(
  broker: RemotingAddress,
  topic: string,
  queueId: number,
  { from, end }: { readonly from: number; readonly end: number },
): AsyncGenerator<StoredMessage> {
  for (let offset = from; offset < end;) {
    const messages = await readMessages(broker, topic, { queueId, offset, max: Math.min(PULL_MAX, end - offset) });
    const last = messages.at(-1);
    if (last === undefined) return;
    for (const message of messages) if (message.queueOffset < end) yield message;
    offset = last.queueOffset + 1;
  }
}

/** Maximum number of messages with the same key in an answer. A batch that was published again has a few messages. */
const MESSAGES_OF_KEY_MAX = 32;
const FAR_MS = String(2 ** 52);

/** Returns at most 32 messages of a topic that carry a key, oldest first. */
export const readMessagesOfKey = (broker: RemotingAddress, topic: string, key: string): Promise<StoredMessage[]> =>
  queryMessages(broker, topic, key, ({ KEYS }) => KEYS?.split(' ').includes(key) ?? false);

/** Searches the broker's index of hashes of keys and sender ids. */
async function queryMessages(
  broker: RemotingAddress,
  topic: string,
  key: string,
  isMeant: (properties: StoredMessage['properties']) => boolean,
): Promise<StoredMessage[]> {
  const fields = { topic, key, maxNum: String(MESSAGES_OF_KEY_MAX), beginTimestamp: '0', endTimestamp: FAR_MS };
  const answer = await askForSome(broker, REQUEST.queryMessage, fields, [NOT_FOUND, TOPIC_NOT_FOUND]);
  if (answer === null) return [];
  return decodeMessages(answer.bytes)
    .filter(({ properties }) => isMeant(properties))
    .sort((one, other) => one.storedAtMs - other.storedAtMs);
}

const PLACE_ID = /^(?:[0-9A-F]{32}|[0-9A-F]{56})$/;
const COMMIT_LOG_OFFSET_DIGITS = 16;

/** @param id the sender's, which all copies share, or that of a position in the commit log of this broker */
export async function readMessagesOfId(broker: RemotingAddress, topic: string, id: string): Promise<StoredMessage[]> {
  const bySender = await queryMessages(broker, topic, id, ({ UNIQ_KEY }) => UNIQ_KEY === id);
  const place = id.toUpperCase();
  if (bySender.length > 0 || !PLACE_ID.test(place)) return bySender;
  const offset = BigInt(`0x${place.slice(-COMMIT_LOG_OFFSET_DIGITS)}`).toString();
  const answer = await exchange(broker, REQUEST.viewMessage, '', { topic, offset });
  if (answer.code !== 0) return []; // a broker also refuses an offset that is not its own
  return decodeMessages(answer.bytes).filter((message) => message.topic === topic && message.offsetId === place);
}

/** Returns the offset of the first message of a queue that was stored at or after this time. */
export async function readOffsetAt(
  broker: RemotingAddress,
  topic: string,
  queueId: number,
  atMs: number,
): Promise<number> {
  const fields = { topic, queueId: String(queueId), timestamp: String(atMs) };
  const answer = await exchange(broker, REQUEST.searchOffset, '', fields);
  if (answer.code !== 0) throw refusal(broker, answer);
  return Number(answer.extFields?.offset);
}

/** Returns the connected producers, including producers that can answer for a half message. */
export async function readProducers(broker: RemotingAddress): Promise<ProducerClient[]> {
  const { data } = parseAnswer<{
    data?: Record<string, readonly { clientId: string; remoteIP?: string; language?: string }[]>;
  }>(await askRemoting(broker, REQUEST.allProducers));
  return Object.entries(data ?? {}).flatMap(([group, clients]) =>
    clients.map(({ clientId, remoteIP = '', language = '' }) => ({ group, clientId, address: remoteIP, language })),
  );
}

/** Returns the clients that consume with a group at present. */
export async function readConsumers(broker: RemotingAddress, group: string): Promise<BrokerClient[]> {
  const answer = await askForSome(broker, REQUEST.consumerConnections, { consumerGroup: group }, [NOBODY_ONLINE]);
  if (answer === null) return [];
  const { connectionSet } = parseAnswer<{
    connectionSet?: readonly { clientId: string; clientAddr?: string; language?: string }[];
  }>(answer.body);
  return (connectionSet ?? []).map(({ clientId, clientAddr = '', language = '' }) => ({
    clientId,
    address: clientAddr,
    language,
  }));
}

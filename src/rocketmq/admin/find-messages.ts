import { TOPICS } from '../../core/topics.js';
import type { TraceBroker, TracedMessage } from '../../core/ports/trace-sources.js';
import { DEFAULT_CLUSTER, masterBrokers, parseAddress } from './broker-state.js';
import { type RemotingAddress, encodeRequest, exchange, NOT_FOUND, REQUEST } from './remoting.js';

/** Messages of one key that an answer may hold; a batch that was published again has a few. */
const MESSAGES_MAX = 32;

/**
 * When a broker stored the messages of a topic that carry this key, Unix ms on its clock, oldest first.
 * @throws Error when it does not answer or refuses
 */
export async function findMessages(broker: RemotingAddress, topic: string, key: string): Promise<number[]> {
  const fields = { topic, key, maxNum: String(MESSAGES_MAX), beginTimestamp: '0', endTimestamp: String(2 ** 52) };
  const answer = await exchange(broker, encodeRequest(REQUEST.queryMessage, '', fields));
  if (answer.code === NOT_FOUND) return [];
  if (answer.code !== 0) throw new Error(answer.remark ?? `the broker refused with code ${answer.code}`);
  return storeTimes(answer.bytes, key).sort((a, b) => a - b);
}

const SYS_FLAG_AT = 36;
const BORN_HOST_AT = 48;
const BORN_HOST_V6 = 1 << 4;
const [V4_BYTES, V6_BYTES] = [8, 20];

/**
 * Messages as the commit log keeps them (MessageDecoder.java of 5.4.0): length (4) … system flags (4) at 36, born time
 * (8), born host (IPv4 8, IPv6 20), store time (8) … properties. The index of the broker holds a hash of the key, so a
 * message of another key may be among them.
 */
export function storeTimes(bytes: Buffer, key: string): number[] {
  const named = `KEYS\u0001${key}\u0002`;
  const times: number[] = [];
  for (let at = 0; at + BORN_HOST_AT < bytes.length;) {
    const length = bytes.readInt32BE(at);
    if (length <= BORN_HOST_AT || at + length > bytes.length) throw new Error('the answer holds no whole messages');
    const message = bytes.subarray(at, at + length);
    const isV6 = (message.readInt32BE(SYS_FLAG_AT) & BORN_HOST_V6) !== 0;
    const storedAtMs = Number(message.readBigInt64BE(BORN_HOST_AT + (isV6 ? V6_BYTES : V4_BYTES)));
    if (message.includes(named) || message.subarray(-named.length + 1).toString() === named.slice(0, -1)) {
      times.push(storedAtMs);
    }
    at += length;
  }
  return times;
}

/** Where each kind of message of a batch is stored; half messages in a topic of the broker's own. */
const PLACES = [
  ['half', 'RMQ_SYS_TRANS_HALF_TOPIC'],
  ['committed', TOPICS.purchase],
  ['redriven', TOPICS.redrive],
] as const;

/** Asks every broker of the cluster over the admin protocol, which a gRPC endpoint does not support. */
export function createTraceBroker(namesrvAddr: string, cluster: string = DEFAULT_CLUSTER): TraceBroker {
  return {
    async messagesOf(batchId): Promise<TracedMessage[]> {
      const brokers = await masterBrokers(parseAddress(namesrvAddr), cluster);
      if (brokers.length === 0) throw new Error(`${namesrvAddr} knows no broker of the cluster ${cluster}`);
      const found: TracedMessage[] = [];
      for (const broker of brokers) {
        for (const [kind, topic] of PLACES) {
          const times = await findMessages(broker, topic, batchId);
          found.push(...times.map((storedAtMs) => ({ kind, storedAtMs })));
        }
      }
      return found;
    },
  };
}

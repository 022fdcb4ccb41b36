import { inflateSync } from 'node:zlib';
import { RemotingError } from './remoting.js';

/** A message as a broker has stored it, with its raw body. */
export interface StoredMessage {
  readonly topic: string;
  readonly queueId: number;
  readonly queueOffset: number;
  /** Where the message starts in the commit log, in bytes. */
  readonly physicalOffset: number;
  /** Names this position: broker address and `physicalOffset`, in hex. RocketMQ tools accept this id. */
  readonly offsetId: string;
  /** Unix ms, on the clock of the sender (born) or of the broker (stored). */
  readonly bornAtMs: number;
  readonly storedAtMs: number;
  /** Number of earlier deliveries to a consumer. */
  readonly deliveries: number;
  readonly body: Buffer;
  /** Properties set by the broker (`KEYS`, `UNIQ_KEY`, `TAGS` …) and by the sender. */
  readonly properties: Readonly<Record<string, string>>;
}

/** Marks a record whose topic may be longer than 127 bytes, so that the length of the topic takes two bytes. */
const MAGIC_LONG_TOPIC = -626_843_477;
const [COMPRESSED, BORN_HOST_V6, STORE_HOST_V6] = [1, 1 << 4, 1 << 5] as const;
const COMPRESSION_AT = 8;
/** zlib, or no type. A Java client compresses bodies of 4 KiB and more with it. */
const ZLIB: readonly number[] = [0, 3];
/** No client sends more by default. A few compressed kB may claim to be many GiB. */
const BODY_BYTES_MAX = 4 * 1024 * 1024;
const [V4_BYTES, V6_BYTES] = [8, 20];
/** Length of the fixed part before the first address. */
const LEAST_BYTES = 48;

/** Reads the format of the commit log (MessageDecoder.java of 5.4.0). @throws RemotingError if a message is cut off */
export function decodeMessages(bytes: Buffer): StoredMessage[] {
  const messages: StoredMessage[] = [];
  for (let at = 0; at < bytes.length;) {
    const length = at + LEAST_BYTES < bytes.length ? bytes.readInt32BE(at) : 0;
    if (length <= LEAST_BYTES || at + length > bytes.length) throw notWhole();
    messages.push(decodeOne(bytes.subarray(at, at + length)));
    at += length;
  }
  return messages;
}

const notWhole = (cause?: unknown): RemotingError =>
  new RemotingError('the answer contains no complete messages', { cause });

function decodeOne(record: Buffer): StoredMessage {
  try {
    return decodeRecord(record);
  } catch (error) {
    throw error instanceof RangeError ? notWhole(error) : error; // a length in the answer points past its end
  }
}

function decodeRecord(record: Buffer): StoredMessage {
  const systemFlags = record.readInt32BE(36);
  const hostBytes = (flag: number): number => ((systemFlags & flag) === 0 ? V4_BYTES : V6_BYTES);
  let at = LEAST_BYTES + hostBytes(BORN_HOST_V6);
  const storedAtMs = Number(record.readBigInt64BE(at));
  const storeHost = record.subarray(at + 8, at + 8 + hostBytes(STORE_HOST_V6));
  at += 8 + storeHost.length;
  const deliveries = record.readInt32BE(at);
  at += 12; // skips the offset of a prepared message, which is not needed here
  const bodyEnd = at + 4 + record.readInt32BE(at);
  const body = record.subarray(at + 4, bodyEnd);
  const isLongTopic = record.readInt32BE(4) === MAGIC_LONG_TOPIC;
  const topicAt = bodyEnd + (isLongTopic ? 2 : 1);
  const topicEnd = topicAt + (isLongTopic ? record.readInt16BE(bodyEnd) : record.readInt8(bodyEnd));
  const propertiesEnd = topicEnd + 2 + record.readInt16BE(topicEnd);
  return {
    topic: record.toString('utf8', topicAt, topicEnd),
    queueId: record.readInt32BE(12),
    queueOffset: Number(record.readBigInt64BE(20)),
    physicalOffset: Number(record.readBigInt64BE(28)),
    offsetId: Buffer.concat([storeHost, record.subarray(28, 36)])
      .toString('hex')
      .toUpperCase(),
    bornAtMs: Number(record.readBigInt64BE(40)),
    storedAtMs,
    deliveries,
    body: (systemFlags & COMPRESSED) === 0 ? body : inflated(body, (systemFlags >> COMPRESSION_AT) & 7),
    properties: propertiesIn(record.toString('utf8', topicEnd + 2, propertiesEnd)),
  };
}

/** Leaves LZ4, Zstandard and falsely marked bodies as they are: any client may have sent them. */
function inflated(body: Buffer, compression: number): Buffer {
  if (!ZLIB.includes(compression)) return body;
  try {
    return inflateSync(body, { maxOutputLength: BODY_BYTES_MAX });
  } catch {
    return body;
  }
}

/** @param text `name 0x01 value 0x02 …`; the last 0x02 may be missing */
function propertiesIn(text: string): Record<string, string> {
  const properties: Record<string, string> = {};
  for (const pair of text.split('\u0002')) {
    const nameEnd = pair.indexOf('\u0001');
    if (nameEnd > 0) properties[pair.slice(0, nameEnd)] = pair.slice(nameEnd + 1);
  }
  return properties;
}

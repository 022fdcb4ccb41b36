import { connect, type Socket } from 'node:net';
import { connect as connectByTls } from 'node:tls';
import { tlsReason, type Tls } from '../../core/tls.js';
import { accessRefusal, ROCKETMQ_TLS_NAMES, signFields, type BrokerCredentials } from '../credentials.js';

/** A nearby broker answers in milliseconds. A broker that is stopped or hangs never does. */
const ANSWER_TIMEOUT_MS = 2_000;
/** A connection waits this long for its next request. New connections would cost more than the answers. */
const IDLE_MAX_MS = 1_000;

/**
 * The requests that we send to RocketMQ over its remoting protocol (RequestCode.java of 5.4.0). The admin tool would
 * take seconds, because it starts a JVM for each.
 */
export const REQUEST = {
  /** Fields: consumerGroup, topic, queueId, queueOffset, maxMsgNums, sysFlag, commitOffset, subscription, … */
  pullMessage: 11,
  /** Fields: topic, key, maxNum, beginTimestamp, endTimestamp. */
  queryMessage: 12,
  /** Fields: topic, defaultTopic, readQueueNums, writeQueueNums, perm, topicFilterType, order, attributes. */
  updateTopic: 17,
  allTopicConfigs: 21,
  /** Body: lines of key=value. */
  updateBrokerConfig: 25,
  /** Answers with lines of key=value. */
  brokerConfig: 26,
  brokerRuntimeInfo: 28,
  /** Fields: topic, queueId, timestamp (ms). Answers with the field offset. */
  searchOffset: 29,
  /** Fields: topic, offset (of the commit log). */
  viewMessage: 33,
  /** Field: topic. */
  routeOfTopic: 105,
  clusterInfo: 106,
  /** Body: the group as JSON. */
  updateGroup: 200,
  allGroupConfigs: 201,
  /** Field: topic. */
  topicStats: 202,
  /** Fields: consumerGroup, topic. */
  consumeStats: 208,
  /** Field: producerGroup. */
  producerConnections: 204,
  /** Field: consumerGroup. */
  consumerConnections: 203,
  /** Fields: topic, msgId (the id of a position, not of a message). */
  resumeCheckHalf: 323,
  allProducers: 328,
} as const;

export interface RemotingAddress {
  readonly host: string;
  readonly port: number;
  /** For a server with access control. If absent or null, requests are not signed. */
  readonly credentials?: BrokerCredentials | null;
  /** Null or absent if the connection is not encrypted. */
  readonly tls?: Tls | null;
}

interface FrameHeader {
  /** 0 is success. */
  readonly code: number;
  readonly remark?: string;
  readonly extFields?: RequestFields;
}

interface Frame extends FrameHeader {
  readonly body: string;
  /** The raw body, for binary answers. */
  readonly bytes: Buffer;
}

/** Fields in the header of a request, in addition to its code. */
export type RequestFields = Readonly<Record<string, string>>;

/** Code that a broker returns instead of an empty list. */
export const NOT_FOUND = 22;
/** Code that a broker returns for a topic that it does not have. */
export const TOPIC_NOT_FOUND = 17;
/** Code for a group that has no connected clients. */
export const NOBODY_ONLINE = 206;
/** Code that a broker with access control returns to an unknown client. */
export const NO_PERMISSION = 16;

/** Enough for all topics of a large broker. */
const FRAME_BYTES_MAX = 64 * 1024 * 1024;

/** A RocketMQ server did not answer, refused, or sent an unreadable answer. */
export class RemotingError extends Error {
  /** True if the server answered with a refusal. An immediate retry would get the same answer. */
  readonly isRefusal: boolean;

  constructor(
    message: string,
    { cause, isRefusal = false }: { readonly cause?: unknown; readonly isRefusal?: boolean } = {},
  ) {
    super(message, { cause });
    this.name = 'RemotingError';
    this.isRefusal = isRefusal;
  }
}

/** Encodes a frame: length (4), header length (4, its top byte 0 for a JSON header), header, body. */
export function encodeRequest(code: number, body = '', extFields: RequestFields = {}): Buffer {
  const shared = { language: 'OTHER', version: 0, opaque: 1, flag: 0, serializeTypeCurrentRPC: 'JSON' };
  const header = Buffer.from(JSON.stringify({ code, ...shared, extFields }));
  const payload = Buffer.from(body);
  const lengths = Buffer.alloc(8);
  lengths.writeInt32BE(4 + header.length + payload.length, 0);
  lengths.writeInt32BE(header.length, 4);
  return Buffer.concat([lengths, header, payload]);
}

/**
 * @returns null while bytes are missing
 * @throws RemotingError if not a frame of the protocol, or too long
 */
export function decodeFrame(bytes: Buffer): Frame | null {
  if (bytes.length < 8) return null;
  const length = bytes.readInt32BE(0);
  if (length < 4 || length > FRAME_BYTES_MAX) {
    throw new RemotingError('the answer is not RocketMQ remoting, or is longer than 64 MiB');
  }
  if (bytes.length < 4 + length) return null;
  const headerEnd = 8 + (bytes.readInt32BE(4) & 0xffffff);
  const header = parseAnswer<FrameHeader>(bytes.toString('utf8', 8, headerEnd));
  const body = bytes.subarray(headerEnd, 4 + length);
  return {
    ...header,
    bytes: body,
    get body() {
      return body.toString('utf8'); // converted only on demand, because many MiB of messages are needed only as bytes
    },
  };
}

/** @throws RemotingError if the text is not JSON */
export function parseAnswer<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new RemotingError('the answer is not JSON', { cause });
  }
}

/**
 * @returns the body of the answer
 * @throws RemotingError on a refusal, or without an answer within 2 s
 */
export const askRemoting = async (
  address: RemotingAddress,
  code: number,
  request = '',
  fields: RequestFields = {},
): Promise<string> => granted(address, await exchange(address, code, request, fields)).body;

/**
 * @param none codes that mean that there is no such data
 * @returns null if there is no such data
 * @throws RemotingError on any other refusal, or without an answer within 2 s
 */
export async function askForSome(
  address: RemotingAddress,
  code: number,
  fields: RequestFields,
  none: readonly number[],
): Promise<Frame | null> {
  const frame = await exchange(address, code, '', fields);
  return none.includes(frame.code) ? null : granted(address, frame);
}

function granted(address: RemotingAddress, frame: Frame): Frame {
  if (frame.code === 0) return frame;
  throw refusal(address, frame);
}

export function refusal({ host, port }: RemotingAddress, { code, remark }: FrameHeader): RemotingError {
  const message =
    code === NO_PERMISSION
      ? `${host}:${port} ${accessRefusal(remark ?? 'no permission')}`
      : (remark ?? `${host}:${port} refused with code ${code}`);
  return new RemotingError(message, { isRefusal: true });
}

/**
 * Sends a request over a connection with nothing else under way, signed if the address has credentials.
 * @returns the answer, which may be a refusal
 * @throws RemotingError without an answer within 2 s
 */
export async function exchange(
  address: RemotingAddress,
  code: number,
  body = '',
  fields: RequestFields = {},
): Promise<Frame> {
  const { credentials } = address;
  const request = encodeRequest(code, body, credentials ? signFields(fields, Buffer.from(body), credentials) : fields);
  const kept = idle.get(placeOf(address))?.pop();
  if (kept === undefined) return new Connection(address).ask(request);
  try {
    return await kept.ask(request);
  } catch (error) {
    if (!(error instanceof ClosedError)) throw error;
    return new Connection(address).ask(request); // the server had closed the idle connection
  }
}

/** Returns the pool key. It includes the access key, because a broker may remember the login of a connection. */
const placeOf = ({ host, port, credentials, tls }: RemotingAddress): string =>
  JSON.stringify([host, port, credentials?.accessKey, credentials?.accessSecret, tls?.id]);

/** Connections that are waiting for their next request, by pool key. */
const idle = new Map<string, Connection[]>();

/** Thrown if the server has closed the connection. */
class ClosedError extends RemotingError {}

/** A connection with at most one request under way. After the answer, it waits in `idle` for the next request. */
class Connection {
  readonly #place: string;
  readonly #server: string;
  readonly #tls: Tls | null;
  readonly #socket: Socket;
  #question: { resolve(answer: Frame): void; reject(error: Error): void } | null = null;
  #chunks: Buffer[] = [];
  #received = 0;
  #hasAnswered = false;

  constructor(address: RemotingAddress) {
    const { host, port, tls = null } = address;
    this.#place = placeOf(address);
    this.#server = `${host}:${port}`;
    this.#tls = tls;
    const socket = tls === null ? connect({ host, port }) : connectByTls({ host, port, ...tls.optionsFor(host) });
    this.#socket = socket
      .setNoDelay(true)
      .on('data', (chunk) => this.#read(chunk))
      .on('timeout', () => this.#end(new RemotingError(`${this.#server} does not answer`)))
      .on('close', () => this.#end(new ClosedError(`${this.#server} closed the connection${this.#hint}`)))
      .on('error', (cause: NodeJS.ErrnoException) => this.#end(this.#errorOf(cause)));
  }

  /** @throws RemotingError; ClosedError if the server has closed the connection */
  ask(request: Buffer): Promise<Frame> {
    return new Promise((resolve, reject) => {
      this.#question = { resolve, reject };
      this.#socket.ref().setTimeout(ANSWER_TIMEOUT_MS);
      this.#socket.write(request);
    });
  }

  #read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#received += chunk.length;
    try {
      if (this.#received < lengthOf(this.#chunks)) return;
      const frame = decodeFrame(this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks));
      if (frame === null) return;
      const question = this.#question;
      if (question === null) return this.#end(new RemotingError(`${this.#server} answered an unknown request`));
      this.#hasAnswered = true;
      this.#wait();
      question.resolve(frame);
    } catch (error) {
      this.#end(error as Error);
    }
  }

  #wait(): void {
    this.#question = null;
    this.#chunks = [];
    this.#received = 0;
    this.#socket.unref().setTimeout(IDLE_MAX_MS);
    const waiting = idle.get(this.#place);
    if (waiting === undefined) idle.set(this.#place, [this]);
    else waiting.push(this);
  }

  /** A server that requires TLS, or a certificate, may close the connection without an error. */
  get #hint(): string {
    if (this.#hasAnswered || this.#tls?.hasCert === true) return '';
    if (this.#tls === null) return ' (if it accepts only TLS, set ROCKETMQ_TLS to on)';
    return ' (if it asks for a certificate, set ROCKETMQ_TLS_CERT and ROCKETMQ_TLS_KEY)';
  }

  #errorOf(cause: NodeJS.ErrnoException): RemotingError {
    const { code, message } = cause;
    const byTls = this.#tls === null ? null : tlsReason(cause, ROCKETMQ_TLS_NAMES, this.#tls);
    if (byTls !== null) return new RemotingError(`${this.#server} ${byTls}`, { cause, isRefusal: true });
    if (code === 'ECONNRESET' || code === 'EPIPE') {
      return new ClosedError(`${this.#server} closed the connection${this.#hint} (${message})`, { cause });
    }
    return new RemotingError(message || `${this.#server}: ${code ?? 'no connection'}`, { cause }); // may be ''
  }

  #end(error: Error): void {
    this.#socket.destroy();
    this.#question?.reject(error);
    this.#question = null;
    const waiting = idle.get(this.#place)?.filter((other) => other !== this) ?? [];
    if (waiting.length > 0) idle.set(this.#place, waiting);
    else idle.delete(this.#place);
  }
}

/** Returns the length of the frame, if known. A large frame is then assembled once, not with each chunk. */
function lengthOf([first]: readonly Buffer[]): number {
  const length = first !== undefined && first.length >= 4 ? first.readInt32BE(0) : 0;
  return length > FRAME_BYTES_MAX ? 0 : 4 + length; // does not wait for a frame that is too long
}

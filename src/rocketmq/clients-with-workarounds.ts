import { EventEmitter } from 'node:events';
import type { Metadata } from '@grpc/grpc-js';
import {
  Producer,
  SimpleConsumer,
  StatusChecker,
  type BaseClient,
  type BaseClientOptions,
  type Endpoints,
  type MessageQueue,
  type MessageView,
  type TopicRouteData,
} from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import type { ReceiveMessageRequest } from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import type { Tls } from '../core/tls.js';
import { Transport, type TransportListener } from './transport.js';

/** `pinEndpoint` sends every call to the endpoints of the options. `tls` null: not encrypted. */
type Way = { readonly pinEndpoint: boolean; readonly tls: Tls | null };
type TelemetryStream = ReturnType<Producer['createTelemetryStream']>;

/**
 * Works around these defects of rocketmq-client-nodejs:
 * - it cannot trust a private authority, see `channelCredentials`;
 * - it opens a channel per object instead of per address, see `Transport`;
 * - a telemetry stream that fails after its release raises an uncaught error, see `withLastingErrorListener`;
 * - it never uses a broker again that failed once while there is another; here a heartbeat brings it back;
 * - a timer reopens the telemetry after `shutdown()`, see `closedStream`;
 * - `shutdown()` leaves the connections open if the proxy does not answer its last call.
 */
function withWorkarounds<O extends BaseClientOptions, C extends BaseClient>(
  Client: new (options: O) => C,
): new (options: O & Way) => C {
  // TypeScript does not let a class extend a type parameter, so the base is cast to the class of any client.
  const Base = Client as unknown as new (options: BaseClientOptions) => BaseClient;
  abstract class Patched extends Base {
    #stopped = false;
    /** Addresses whose telemetry stream has ended. A timer of the client opens it again. */
    readonly #ended = new Set<string>();
    #headers: { readonly second: number; readonly metadata: Metadata } | null = null;

    constructor(options: BaseClientOptions & Way) {
      super(options);
      this.rpcClientManager.close(); // ends its timer; the manager has no channel yet
      const transport = transportFor(this, options, {
        forgotten: (endpoints) => this.getTelemetrySession(endpoints).syncSettings(),
        heard: (endpoints) => void this.isolated.delete(endpoints.facade),
        moved: () => this.#moveTelemetry(),
      });
      Object.defineProperty(this, 'rpcClientManager', { value: transport });
    }

    /** Reuses the headers for a second, because their signature covers only the time in seconds. gRPC copies them. */
    override getRequestMetadata(): Metadata {
      const second = Math.floor(Date.now() / 1000);
      if (this.#headers?.second !== second) this.#headers = { second, metadata: super.getRequestMetadata() };
      return this.#headers.metadata;
    }

    override createTelemetryStream(endpoints: Endpoints): TelemetryStream {
      if (this.#stopped) return closedStream();
      const stream = withLastingErrorListener(super.createTelemetryStream(endpoints));
      const ended = (): void => void this.#ended.add(endpoints.facade);
      this.#ended.delete(endpoints.facade);
      return stream.once('error', ended).once('end', ended);
    }

    /** Each failed stream starts its own timer, so a stream that waits for its timer is left alone. */
    #moveTelemetry(): void {
      for (const endpoints of this.getTotalRouteEndpoints()) {
        if (!this.#ended.has(endpoints.facade)) this.getTelemetrySession(endpoints).refresh();
      }
    }

    override async shutdown(): Promise<void> {
      this.#stopped = true;
      try {
        await super.shutdown();
      } finally {
        this.rpcClientManager.close();
      }
    }
  }
  return Patched as unknown as new (options: O & Way) => C;
}

const WRITABLE: readonly number[] = [definition.Permission.WRITE, definition.Permission.READ_WRITE];

/** Without the workaround, a producer sends to the brokers of its first route forever. */
export class PatchedProducer extends withWorkarounds(Producer) {
  /** The queues to which the client sends, one per broker. The client keeps the first result of its filter forever. */
  readonly #queues: MessageQueue[] = [];

  /** Number of brokers that take messages. 0 before the first send. */
  get brokers(): number {
    return this.#queues.length;
  }

  /** Number of addresses of these brokers. Brokers behind the same proxies share one. */
  get addresses(): number {
    return new Set(this.#queues.map(({ broker }) => broker.endpoints.facade)).size;
  }

  override async getRouteData(topic: string): Promise<TopicRouteData> {
    this.#use(await super.getRouteData(topic));
    // the client only filters the queues
    return { messageQueues: { filter: () => this.#queues } } as unknown as TopicRouteData;
  }

  override onTopicRouteDataUpdate(_topic: string, route: TopicRouteData): void {
    this.#use(route);
  }

  /** Keeps the old queues if a route has no writable ones: a broker may come back. */
  #use({ messageQueues }: TopicRouteData): void {
    const writable = messageQueues.filter(({ queueId, permission }) => queueId === 0 && WRITABLE.includes(permission));
    if (writable.length > 0) this.#queues.splice(0, Infinity, ...writable);
  }
}

/**
 * Works around two more defects: `ack` ignores the status of each message, and receives rotate over the brokers, so one
 * may get two at a time while another gets none.
 */
export class PatchedConsumer extends withWorkarounds(SimpleConsumer) {
  /** A queue of each broker from which messages are received. */
  #queues: readonly MessageQueue[] = [];
  /** Names of brokers, with one entry for each receive that waits there. */
  readonly #asked: string[] = [];
  readonly #failing = new Set<string>();

  /** Number of receives that it takes to wait at every broker. 1 before the start. */
  get brokers(): number {
    return Math.max(1, this.#queues.length);
  }

  override onTopicRouteDataUpdate(topic: string, route: TopicRouteData): void {
    super.onTopicRouteDataUpdate(topic, route);
    this.#queues = route.messageQueues.filter(
      ({ queueId, permission }) => queueId === 0 && permission !== definition.Permission.WRITE,
    );
  }

  override async receiveMessage(
    request: ReceiveMessageRequest,
    turn: MessageQueue,
    awaitMs: number,
  ): Promise<MessageView[]> {
    const isFree = ({ broker }: MessageQueue): boolean => !this.#asked.includes(broker.name);
    const other = (): MessageQueue | undefined =>
      this.#queues.find((one) => isFree(one) && !this.#failing.has(one.broker.name));
    const queue = isFree(turn) ? turn : (other() ?? turn);
    if (queue !== turn) request.setMessageQueue(queue.toProtobuf());
    const { name } = queue.broker;
    this.#asked.push(name);
    try {
      const received = await super.receiveMessage(request, queue, awaitMs);
      this.#failing.delete(name);
      return received;
    } catch (error) {
      this.#failing.add(name);
      throw error;
    } finally {
      this.#asked.splice(this.#asked.indexOf(name), 1);
    }
  }

  /** Rejects unless the broker accepted the ack. */
  async ackOne(view: MessageView): Promise<void> {
    for (const { status } of await this.ackMessage(view)) StatusChecker.check(status);
  }

  /** Rejects unless the broker accepted the new time. */
  async hideFor(view: MessageView, ms: number): Promise<void> {
    await this.changeInvisibleDuration(view, Math.max(0, Math.round(ms)));
  }
}

function transportFor(
  client: BaseClient,
  { pinEndpoint, endpoints: address, tls }: BaseClientOptions & Way,
  listener: TransportListener,
): Transport {
  return new Transport(client, listener, { pinnedTo: pinEndpoint ? address.replaceAll(';', ',') : null, tls });
}

/** The client removes all listeners when it releases a stream, and a later error would be uncaught. */
function withLastingErrorListener(stream: TelemetryStream): TelemetryStream {
  const removeAll = stream.removeAllListeners.bind(stream);
  stream.removeAllListeners = (...events: [] | [string | symbol]) => {
    removeAll(...events); // passing `undefined` is not the same as passing no event
    stream.on('error', () => undefined);
    return stream;
  };
  return stream;
}

/** The client's timer reopens a broken stream after a second, even after `shutdown()`. It gets this dead one. */
function closedStream(): TelemetryStream {
  const stream = new EventEmitter() as EventEmitter & { write(): boolean; end(): void };
  stream.write = () => false;
  stream.end = () => undefined;
  return stream as unknown as TelemetryStream;
}

import { randomInt } from 'node:crypto';
import type { ChannelCredentials, ChannelOptions, Metadata, ServiceError } from '@grpc/grpc-js';
import { RpcClientManager, type BaseClient, type Endpoints } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import type { Tls } from '../core/tls.js';
import { channelCredentials, tlsChannelOptions } from './channel-credentials.js';
import { isLate, isUnreachable, wasNeverSent } from './classify-error.js';
import { proxiesOf } from './client-options.js';

type ServiceClient = InstanceType<typeof services.MessagingServiceClient>;

const CHANNEL_OPTIONS: ChannelOptions = {
  // Notices a silently cut connection after 25 s; TCP takes 15 minutes. The proxy tolerates two pings between two of
  // its answers, and answers a heartbeat every 10 s.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // The default of 120 s would stop sales for two more minutes after a long outage of the proxy.
  'grpc.max_reconnect_backoff_ms': 5_000,
  // No call is sent twice without our knowledge, and each call is cheaper.
  'grpc.enable_retries': 0,
};

/** A call with one request and one answer. */
type Unary<A> = (
  request: unknown,
  metadata: Metadata,
  options: { deadline: number },
  done: (error: ServiceError | null, answer: A) => void,
) => unknown;

interface SharedAck {
  readonly request: requests.AckMessageRequest;
  readonly answer: Promise<requests.AckMessageResponse>;
}

export interface TransportListener {
  /** The proxy no longer knows the client and needs its settings again. */
  readonly forgotten: (endpoints: Endpoints) => void;
  /** The proxy knows the client. */
  readonly heard: (endpoints: Endpoints) => void;
  /** Calls go to another proxy, which has no telemetry stream of the client yet. */
  readonly moved: () => void;
}

/** A proxy that does not answer this many calls in a row counts as hanging. */
const LATE_MAX = 3;
/** Spreads the clients over the proxies. Exceeds any number of proxies. */
const FIRST_TURN_MAX = 1_000;

/**
 * Sends the calls of a client over one channel per address. Several addresses of an endpoint are proxies in front of
 * the same brokers: a client uses one until it hangs or cannot be reached, then the next. The client's own manager
 * opens a channel for each object that names an address, so at every renewal of a route, and leaves gRPC at its
 * defaults.
 */
export class Transport extends RpcClientManager {
  readonly #client: BaseClient;
  readonly #channels = new Map<string, { readonly channel: ServiceClient; readonly credentials: ChannelCredentials }>();
  readonly #acks = new Map<Endpoints, SharedAck>();
  readonly #listener: TransportListener;
  readonly #pinnedTo: string | null;
  readonly #tls: Tls | null;
  /** Selects the proxy. An increase moves on to the next proxy. */
  #turn = randomInt(FIRST_TURN_MAX);
  /** Number of calls in a row that got no answer in time. */
  #late = 0;

  /** @param way `pinnedTo`: proxies that take every call, whatever its address */
  constructor(
    client: BaseClient,
    listener: TransportListener,
    { pinnedTo, tls }: { readonly pinnedTo: string | null; readonly tls: Tls | null },
  ) {
    super(client, SILENT);
    super.close(); // ends the timer that looks for idle channels, because the parent class has no channels here
    this.#client = client;
    this.#listener = listener;
    this.#pinnedTo = pinnedTo;
    this.#tls = tls;
  }

  override close(): void {
    for (const { channel } of this.#channels.values()) channel.close();
    this.#channels.clear();
  }

  override queryRoute(endpoints: Endpoints, request: requests.QueryRouteRequest, ms: number) {
    return this.#call<requests.QueryRouteResponse>('queryRoute', endpoints, request, ms);
  }

  override async heartbeat(endpoints: Endpoints, request: requests.HeartbeatRequest, ms: number) {
    const response = await this.#call<requests.HeartbeatResponse>('heartbeat', endpoints, request, ms);
    if (response.getStatus()?.getCode() === definition.Code.OK) this.#listener.heard(endpoints);
    else this.#listener.forgotten(endpoints);
    return response;
  }

  override sendMessage(endpoints: Endpoints, request: requests.SendMessageRequest, ms: number) {
    return this.#call<requests.SendMessageResponse>('sendMessage', endpoints, request, ms);
  }

  override endTransaction(endpoints: Endpoints, request: requests.EndTransactionRequest, ms: number) {
    return this.#call<requests.EndTransactionResponse>('endTransaction', endpoints, request, ms);
  }

  /** Sends the acks of one turn together. @param request with one ack */
  override async ackMessage(endpoints: Endpoints, request: requests.AckMessageRequest, ms: number) {
    let shared = this.#acks.get(endpoints);
    if (shared === undefined) {
      const answer = Promise.resolve().then(() => {
        this.#acks.delete(endpoints);
        return this.#call<requests.AckMessageResponse>('ackMessage', endpoints, request, ms);
      });
      this.#acks.set(endpoints, (shared = { request, answer }));
    } else shared.request.addEntries(request.getEntriesList()[0]);
    const place = shared.request.getEntriesList().length - 1;
    const answer = await shared.answer;
    const entries = answer.getEntriesList().slice(place, place + 1);
    return new requests.AckMessageResponse().setStatus(answer.getStatus()).setEntriesList(entries);
  }

  override changeInvisibleDuration(endpoints: Endpoints, request: requests.ChangeInvisibleDurationRequest, ms: number) {
    return this.#call<requests.ChangeInvisibleDurationResponse>('changeInvisibleDuration', endpoints, request, ms);
  }

  override notifyClientTermination(endpoints: Endpoints, request: requests.NotifyClientTerminationRequest, ms: number) {
    return this.#call<requests.NotifyClientTerminationResponse>('notifyClientTermination', endpoints, request, ms);
  }

  override recallMessage(endpoints: Endpoints, request: requests.RecallMessageRequest, ms: number) {
    return this.#call<requests.RecallMessageResponse>('recallMessage', endpoints, request, ms);
  }

  override async receiveMessage(endpoints: Endpoints, request: requests.ReceiveMessageRequest, ms: number) {
    const metadata = this.#client.getRequestMetadata();
    const proxy = this.#proxyOf(endpoints);
    const channel = this.#channel(proxy);
    const stream = withoutTrace(() => channel.receiveMessage(request, metadata, { deadline: Date.now() + ms }));
    const responses: requests.ReceiveMessageResponse[] = [];
    try {
      for await (const response of stream) responses.push(response as requests.ReceiveMessageResponse);
    } catch (error) {
      if (this.#leave(endpoints, proxy, error)) this.#listener.moved();
      throw error;
    }
    return responses;
  }

  override telemetry(endpoints: Endpoints, metadata: Metadata) {
    const proxy = this.#proxyOf(endpoints);
    const stream = this.#channel(proxy).telemetry(metadata);
    // the client itself opens the stream again after a second
    stream.once('error', (error: unknown) => void this.#leave(endpoints, proxy, error));
    return stream;
  }

  /** Calls proxy after proxy while the request certainly was not sent. */
  async #call<A>(method: keyof ServiceClient, endpoints: Endpoints, request: unknown, ms: number): Promise<A> {
    const deadline = Date.now() + ms;
    for (let left = this.#proxiesOf(endpoints).length; ;) {
      const proxy = this.#proxyOf(endpoints);
      try {
        const answer = await this.#callAt<A>(proxy, method, request, deadline);
        this.#late = 0;
        return answer;
      } catch (error) {
        this.#late = isLate(error) ? this.#late + 1 : 0;
        if (this.#leave(endpoints, proxy, error)) this.#listener.moved();
        if (--left === 0 || !wasNeverSent(error)) throw error;
      }
    }
  }

  #proxiesOf(endpoints: Endpoints): readonly string[] {
    return proxiesOf(this.#pinnedTo ?? endpoints.facade);
  }

  #proxyOf(endpoints: Endpoints): string {
    const proxies = this.#proxiesOf(endpoints);
    return proxies[this.#turn % proxies.length] as string;
  }

  /** Moves on to the next proxy if this one hangs or cannot be reached. Returns whether it did. */
  #leave(endpoints: Endpoints, proxy: string, error: unknown): boolean {
    if (this.#proxiesOf(endpoints).length < 2 || this.#proxyOf(endpoints) !== proxy) return false;
    if (!isUnreachable(error) && this.#late < LATE_MAX) return false;
    this.#turn += 1;
    this.#late = 0;
    return true;
  }

  #callAt<A>(proxy: string, method: keyof ServiceClient, request: unknown, deadline: number): Promise<A> {
    const channel = this.#channel(proxy) as unknown as Record<keyof ServiceClient, Unary<A>>;
    const metadata = this.#client.getRequestMetadata();
    return new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, answer: A): void => (error ? reject(error) : resolve(answer));
      withoutTrace(() => channel[method](request, metadata, { deadline }, done));
    });
  }

  #channel(target: string): ServiceClient {
    const credentials = channelCredentials(this.#tls, target);
    const open = this.#channels.get(target);
    if (open?.credentials === credentials) return open.channel;
    open?.channel.close(); // the certificates have changed; calls under way end over the old connection
    const options = { ...CHANNEL_OPTIONS, ...tlsChannelOptions(this.#tls, target) };
    const channel = new services.MessagingServiceClient(target, credentials, options);
    this.#channels.set(target, { channel, credentials });
    return channel;
  }
}

/** gRPC takes a stack trace of every caller in case of a failure, a tenth of the cost of a call. */
function withoutTrace<T>(call: () => T): T {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return call();
  } finally {
    Error.stackTraceLimit = limit;
  }
}

/** The replaced manager would only log the end of channels, and opens none here. */
const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

import type { ChannelCredentials, ChannelOptions, Metadata, ServiceError } from '@grpc/grpc-js';
import { RpcClientManager, type BaseClient, type Endpoints } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import type * as requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import type { Tls } from '../core/tls.js';
import { channelCredentials, tlsChannelOptions } from './channel-credentials.js';

type ServiceClient = InstanceType<typeof services.MessagingServiceClient>;

const CHANNEL_OPTIONS: ChannelOptions = {
  // A silently cut connection is noticed after 25 s. Without this setting TCP takes 15 minutes. The proxy tolerates two
  // pings between two of its own answers, and a heartbeat is answered every 10 s.
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // Default 120 s: after a long outage of the proxy, sales would stop for two more minutes.
  'grpc.max_reconnect_backoff_ms': 5_000,
  // No call of ours is sent twice behind our back, and each call is cheaper.
  'grpc.enable_retries': 0,
};

/** Receives what a heartbeat reports. */
export interface HeartbeatListener {
  /** The proxy at this address no longer knows the client and needs its settings again. */
  readonly forgotten: (endpoints: Endpoints) => void;
  /** The proxy at this address knows the client. */
  readonly heard: (endpoints: Endpoints) => void;
}

/**
 * Sends the calls of a client over a single channel per address. The client's own manager opens a channel for each
 * object that names an address, and so for every renewal of a route, and leaves gRPC at its defaults.
 */
export class Transport extends RpcClientManager {
  readonly #client: BaseClient;
  readonly #channels = new Map<string, { readonly channel: ServiceClient; readonly credentials: ChannelCredentials }>();
  readonly #heartbeat: HeartbeatListener;
  readonly #pinnedTo: string | null;
  readonly #tls: Tls | null;

  /** @param way `pinnedTo`: `host:port` that takes every call instead of the intended address */
  constructor(
    client: BaseClient,
    heartbeat: HeartbeatListener,
    { pinnedTo, tls }: { readonly pinnedTo: string | null; readonly tls: Tls | null },
  ) {
    super(client, SILENT);
    super.close(); // ends the timer that looks for idle channels: the parent class has no channels here
    this.#client = client;
    this.#heartbeat = heartbeat;
    this.#pinnedTo = pinnedTo;
    this.#tls = tls;
  }

  override close(): void {
    for (const { channel } of this.#channels.values()) channel.close();
    this.#channels.clear();
  }

  override queryRoute(endpoints: Endpoints, request: requests.QueryRouteRequest, ms: number) {
    return this.#call<requests.QueryRouteResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.queryRoute(request, metadata, options, done),
    );
  }

  override async heartbeat(endpoints: Endpoints, request: requests.HeartbeatRequest, ms: number) {
    const response = await this.#call<requests.HeartbeatResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.heartbeat(request, metadata, options, done),
    );
    if (response.getStatus()?.getCode() === definition.Code.OK) this.#heartbeat.heard(endpoints);
    else this.#heartbeat.forgotten(endpoints);
    return response;
  }

  override sendMessage(endpoints: Endpoints, request: requests.SendMessageRequest, ms: number) {
    return this.#call<requests.SendMessageResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.sendMessage(request, metadata, options, done),
    );
  }

  override endTransaction(endpoints: Endpoints, request: requests.EndTransactionRequest, ms: number) {
    return this.#call<requests.EndTransactionResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.endTransaction(request, metadata, options, done),
    );
  }

  override ackMessage(endpoints: Endpoints, request: requests.AckMessageRequest, ms: number) {
    return this.#call<requests.AckMessageResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.ackMessage(request, metadata, options, done),
    );
  }

  override changeInvisibleDuration(endpoints: Endpoints, request: requests.ChangeInvisibleDurationRequest, ms: number) {
    return this.#call<requests.ChangeInvisibleDurationResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.changeInvisibleDuration(request, metadata, options, done),
    );
  }

  override notifyClientTermination(endpoints: Endpoints, request: requests.NotifyClientTerminationRequest, ms: number) {
    return this.#call<requests.NotifyClientTerminationResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.notifyClientTermination(request, metadata, options, done),
    );
  }

  override recallMessage(endpoints: Endpoints, request: requests.RecallMessageRequest, ms: number) {
    return this.#call<requests.RecallMessageResponse>(endpoints, ms, (channel, metadata, options, done) =>
      channel.recallMessage(request, metadata, options, done),
    );
  }

  override async receiveMessage(endpoints: Endpoints, request: requests.ReceiveMessageRequest, ms: number) {
    const metadata = this.#client.getRequestMetadata();
    const stream = this.#channel(endpoints).receiveMessage(request, metadata, { deadline: Date.now() + ms });
    const responses: requests.ReceiveMessageResponse[] = [];
    for await (const response of stream) responses.push(response as requests.ReceiveMessageResponse);
    return responses;
  }

  override telemetry(endpoints: Endpoints, metadata: Metadata) {
    return this.#channel(endpoints).telemetry(metadata);
  }

  #call<A>(
    endpoints: Endpoints,
    ms: number,
    start: (
      channel: ServiceClient,
      metadata: Metadata,
      options: { deadline: number },
      done: (error: ServiceError | null, response: A) => void,
    ) => unknown,
  ): Promise<A> {
    const channel = this.#channel(endpoints);
    const metadata = this.#client.getRequestMetadata();
    return new Promise((resolve, reject) => {
      // gRPC takes a stack trace of every caller in case the call fails. The trace is a tenth of the cost of a call.
      const limit = Error.stackTraceLimit;
      Error.stackTraceLimit = 0;
      try {
        start(channel, metadata, { deadline: Date.now() + ms }, (error, response) =>
          error ? reject(error) : resolve(response),
        );
      } finally {
        Error.stackTraceLimit = limit;
      }
    });
  }

  #channel(endpoints: Endpoints): ServiceClient {
    const target = this.#pinnedTo ?? endpoints.getGrpcTarget();
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

/** The logger of the replaced manager, which would log only the end of channels. The manager opens no channels here. */
const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

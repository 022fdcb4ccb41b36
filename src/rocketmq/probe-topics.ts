import { randomUUID } from 'node:crypto';
import { Metadata } from '@grpc/grpc-js';
import { Endpoints } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import { channelCredentials, tlsChannelOptions } from './channel-credentials.js';
import { parseEndpoint, proxiesOf, type ConnectionOptions } from './client-options.js';
import { accessRefusalIn, signedHeaders, type BrokerCredentials } from './credentials.js';
import { handshakeFlaw } from './handshake.js';

const ANSWER_WITHIN_MS = 3000;

type ServiceClient = InstanceType<typeof services.MessagingServiceClient>;

type Asked = Pick<ConnectionOptions, 'endpoint' | 'credentials' | 'tls'>;

/**
 * Asks a proxy for the route of each topic, over a short-lived connection. If this proxy cannot serve, asks the next
 * proxy. Starts no client of the group and sends no message, so it disturbs no consumer.
 * @returns a sentence about the first topic without a route, or null. Never rejects
 */
export async function probeTopics(asked: Asked, topics: readonly string[]): Promise<string | null> {
  let first: string | null = null;
  for (const endpoint of proxiesOf(asked.endpoint)) {
    const problem = await probeProxy({ ...asked, endpoint }, topics);
    if (problem === null) return null;
    first ??= problem;
  }
  return first;
}

async function probeProxy(asked: Asked, topics: readonly string[]): Promise<string | null> {
  const { endpoint } = asked;
  try {
    return await withClient(asked, async (routeOf) => {
      for (const topic of topics) {
        const { outcome, why } = await routeOf(topic);
        if (outcome === 'denied') return `RocketMQ at ${endpoint} ${why}`;
        if (outcome === 'missing') return `topic ${topic} is missing: ${why}`;
      }
      return null;
    });
  } catch (error) {
    const flaw = await handshakeFlaw(endpoint, asked.tls ?? null);
    if (flaw !== null) return `RocketMQ at ${endpoint} ${flaw}`;
    return `the broker cannot be reached at ${endpoint}: ${(error as Error).message}`;
  }
}

/** Returns whether the proxy serves a client without a key. Null if the proxy does not answer. Never rejects. */
export async function probeAsStranger(
  asked: Pick<Asked, 'endpoint' | 'tls'>,
  topic: string,
): Promise<'served' | 'refused' | null> {
  try {
    const { outcome } = await withClient({ ...asked, credentials: null }, (routeOf) => routeOf(topic));
    return outcome === 'denied' ? 'refused' : 'served';
  } catch {
    return null;
  }
}

/** Route of a topic. `why` is the end of a sentence, and empty if the topic has queues. */
interface Route {
  readonly outcome: 'there' | 'missing' | 'denied';
  readonly why: string;
}

/** @throws what the driver throws if the proxy does not answer */
async function withClient<T>(
  { endpoint, credentials, tls = null }: Asked,
  work: (routeOf: (topic: string) => Promise<Route>) => Promise<T>,
): Promise<T> {
  const { host, port } = parseEndpoint(endpoint);
  const target = `${host}:${port}`;
  const client = new services.MessagingServiceClient(
    target,
    channelCredentials(tls, target),
    tlsChannelOptions(tls, target),
  );
  try {
    return await work((topic) => routeOf(client, endpoint, metadataOf(credentials), topic));
  } finally {
    client.close();
  }
}

function metadataOf(credentials: BrokerCredentials | null): Metadata {
  const metadata = new Metadata();
  metadata.set('x-mq-protocol', 'v2');
  metadata.set('x-mq-client-id', `seckill-probe@${process.pid}@${randomUUID()}`);
  metadata.set('x-mq-language', 'HTTP');
  for (const [name, value] of Object.entries(credentials ? signedHeaders(credentials) : {})) metadata.set(name, value);
  return metadata;
}

function routeOf(client: ServiceClient, endpoint: string, metadata: Metadata, topic: string): Promise<Route> {
  const request = new requests.QueryRouteRequest();
  const resource = new definition.Resource();
  resource.setName(topic);
  request.setTopic(resource);
  request.setEndpoints(new Endpoints(endpoint).toProtobuf());
  return new Promise((resolve, reject) => {
    client.queryRoute(request, metadata, { deadline: Date.now() + ANSWER_WITHIN_MS }, (error, response) => {
      if (error) return reject(error);
      const status = response.getStatus();
      const code = status?.getCode();
      const isThere = code === definition.Code.OK && response.getMessageQueuesList().length > 0;
      if (isThere) return resolve({ outcome: 'there', why: '' });
      const denied = accessRefusalIn({ code, message: status?.getMessage() });
      if (denied !== null) return resolve({ outcome: 'denied', why: denied });
      const why = code === definition.Code.OK ? 'it has no queues' : (status?.getMessage() ?? 'no status');
      resolve({ outcome: 'missing', why });
    });
  });
}

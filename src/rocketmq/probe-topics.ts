import { randomUUID } from 'node:crypto';
import { ChannelCredentials, Metadata } from '@grpc/grpc-js';
import { Endpoints } from 'rocketmq-client-nodejs';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import { parseEndpoint } from './client-options.js';

const ANSWER_WITHIN_MS = 3000;

type ServiceClient = InstanceType<typeof services.MessagingServiceClient>;

/**
 * Asks the proxy for the route of each topic, over one short connection. No client of the group is started and nothing is
 * sent, so it disturbs nobody.
 * @returns a sentence about the first topic that has no route; null when each has one. Never rejects
 */
export async function probeTopics(endpoint: string, topics: readonly string[]): Promise<string | null> {
  let client: ServiceClient | null = null;
  try {
    const { host, port } = parseEndpoint(endpoint);
    client = new services.MessagingServiceClient(`${host}:${port}`, ChannelCredentials.createInsecure());
    for (const topic of topics) {
      const refusal = await routeRefusal(client, endpoint, topic);
      if (refusal !== null) return `topic ${topic} is not there: ${refusal}`;
    }
    return null;
  } catch (error) {
    return `the broker cannot be reached at ${endpoint}: ${(error as Error).message}`;
  } finally {
    client?.close();
  }
}

/** Null: the topic has queues. */
function routeRefusal(client: ServiceClient, endpoint: string, topic: string): Promise<string | null> {
  const request = new requests.QueryRouteRequest();
  const resource = new definition.Resource();
  resource.setName(topic);
  request.setTopic(resource);
  request.setEndpoints(new Endpoints(endpoint).toProtobuf());
  const metadata = new Metadata();
  metadata.set('x-mq-protocol', 'v2');
  metadata.set('x-mq-client-id', `seckill-probe@${process.pid}@${randomUUID()}`);
  metadata.set('x-mq-language', 'HTTP');
  return new Promise((resolve, reject) => {
    client.queryRoute(request, metadata, { deadline: Date.now() + ANSWER_WITHIN_MS }, (error, response) => {
      if (error) return reject(error);
      const status = response.getStatus();
      if (status?.getCode() !== definition.Code.OK) return resolve(status?.getMessage() ?? 'no status');
      resolve(response.getMessageQueuesList().length > 0 ? null : 'it has no queues');
    });
  });
}

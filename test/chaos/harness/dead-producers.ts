import { ChannelCredentials, Metadata } from '@grpc/grpc-js';
import definition from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/definition_pb.js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { TOPICS } from '../../../src/core/topics.js';
import { producersOf } from '../../../src/rocketmq/admin/broker-state.js';
import type { StackHands } from './stack-hands.js';

type Proxy = InstanceType<typeof services.MessagingServiceClient>;

const CALL_TIMEOUT_MS = 5_000;
/** The one that clients of ours name; the proxy knows no Node. */
const LANGUAGE = 'HTTP';

/**
 * Takes leave of the broker for apis that were killed and could not. It keeps each for two minutes and tries three of its
 * list per check-back: behind rows that killed several, the one api that lives might not be asked for as long.
 * @param pids processes that have ended
 * @throws Error when broker or proxy does not answer, or refuses
 */
export async function forgetProducers(
  { servers, env }: Pick<StackHands, 'servers' | 'env'>,
  pids: readonly number[],
): Promise<void> {
  if (pids.length === 0) return;
  const known = await producersOf({ host: '127.0.0.1', port: servers.ports.broker }, TOPICS.purchase);
  const ids = known.filter((id) => pids.includes(pidOf(id)));
  const proxy = new services.MessagingServiceClient(env.ROCKETMQ_ENDPOINT, ChannelCredentials.createInsecure());
  try {
    await Promise.all(ids.map((id) => takeLeave(proxy, id)));
  } finally {
    proxy.close();
  }
}

function takeLeave(proxy: Proxy, clientId: string): Promise<void> {
  const metadata = new Metadata();
  metadata.set('x-mq-client-id', clientId);
  metadata.set('x-mq-language', LANGUAGE);
  const options = { deadline: Date.now() + CALL_TIMEOUT_MS };
  return new Promise((resolve, reject) => {
    proxy.notifyClientTermination(new requests.NotifyClientTerminationRequest(), metadata, options, (error, reply) => {
      const status = reply?.getStatus();
      if (error) reject(error);
      else if (status?.getCode() === definition.Code.OK) resolve();
      else reject(new Error(`the proxy does not forget ${clientId}: ${status?.getMessage()}`));
    });
  });
}

/** The client makes its id of host, pid, a counter and the time. */
const pidOf = (clientId: string): number => Number(clientId.split('@')[1]);

import { ChannelCredentials, Metadata } from '@grpc/grpc-js';
import services from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_grpc_pb.js';
import requests from 'rocketmq-client-nodejs/proto/apache/rocketmq/v2/service_pb.js';
import { TOPICS } from '../../domain/topics.js';
import { producersOf } from '../../stack/broker-state.js';
import { identityOf } from '../../stack/process-identity.js';
import type { StackHands } from './stack-hands.js';

const CALL_TIMEOUT_MS = 5_000;

/** The one that clients of ours name; the proxy knows no Node. */
const LANGUAGE = 'HTTP';

/**
 * Takes leave of the broker for every api of this machine that was killed and could not. It keeps each for two minutes
 * and tries three of its list per check-back: behind rows that killed several, the one api that lives might not be asked
 * for as long.
 * @throws Error when broker or proxy does not answer
 */
export async function forgetDeadProducers({ servers, env }: Pick<StackHands, 'servers' | 'env'>): Promise<void> {
  const known = await producersOf({ host: '127.0.0.1', port: servers.ports.broker }, TOPICS.purchase);
  const ids = known.filter((id) => identityOf(pidOf(id)) === null);
  if (ids.length === 0) return;
  const proxy = new services.MessagingServiceClient(env.ROCKETMQ_ENDPOINT, ChannelCredentials.createInsecure());
  const takeLeave = (id: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const metadata = new Metadata();
      metadata.set('x-mq-client-id', id);
      metadata.set('x-mq-language', LANGUAGE);
      const options = { deadline: Date.now() + CALL_TIMEOUT_MS };
      const request = new requests.NotifyClientTerminationRequest();
      proxy.notifyClientTermination(request, metadata, options, (error) => (error ? reject(error) : resolve()));
    });
  try {
    await Promise.all(ids.map(takeLeave));
  } finally {
    proxy.close();
  }
}

/** The client makes its id of host, pid, a counter and the time. */
const pidOf = (clientId: string): number => Number(clientId.split('@')[1]);

import { exchange, refusal, REQUEST, type RemotingAddress } from '../../src/rocketmq/admin/remoting.js';

/** In the answer of a broker for a group that has no producer. */
const NO_PRODUCER = 'not exist';

/**
 * Client ids of the producers that a broker knows, those that were killed up to two minutes ago among them.
 * @param group of gRPC clients: the topic
 * @throws Error when it does not answer or refuses
 */
export async function producersOf(broker: RemotingAddress, group: string): Promise<string[]> {
  const frame = await exchange(broker, REQUEST.producerConnections, '', { producerGroup: group });
  if (frame.remark?.includes(NO_PRODUCER)) return [];
  if (frame.code !== 0) throw refusal(broker, frame);
  const { connectionSet = [] } = JSON.parse(frame.body) as { connectionSet?: readonly { clientId: string }[] };
  return connectionSet.map(({ clientId }) => clientId);
}

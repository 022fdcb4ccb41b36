import { exchange, refusal, REQUEST, type RemotingAddress } from '../../src/rocketmq/admin/remoting.js';

/** Part of a broker's answer for a group without producers. */
const NO_PRODUCER = 'not exist';

/**
 * Returns the client ids of the producers that a broker knows, including producers killed up to two minutes ago.
 * @param group for gRPC clients, the topic
 * @throws Error when the broker does not answer or refuses
 */
export async function producersOf(broker: RemotingAddress, group: string): Promise<string[]> {
  const frame = await exchange(broker, REQUEST.producerConnections, '', { producerGroup: group });
  if (frame.remark?.includes(NO_PRODUCER)) return [];
  if (frame.code !== 0) throw refusal(broker, frame);
  const { connectionSet = [] } = JSON.parse(frame.body) as { connectionSet?: readonly { clientId: string }[] };
  return connectionSet.map(({ clientId }) => clientId);
}

import type { BrokerCredentials } from '../credentials.js';
import { TOPICS } from '../../core/topics.js';
import type { TraceBroker, TracedMessage } from '../../core/ports/trace-sources.js';
import { DEFAULT_CLUSTER, masterBrokers, parseAddress } from './broker-state.js';
import { readMessagesOfKey } from './inspect-broker.js';

/** Where each kind of message of a batch is stored; half messages in a topic of the broker's own. */
const PLACES = [
  ['half', 'RMQ_SYS_TRANS_HALF_TOPIC'],
  ['committed', TOPICS.purchase],
  ['redriven', TOPICS.redrive],
] as const;

/** Asks every broker of the cluster over the admin protocol, which a gRPC endpoint does not support. */
export function createTraceBroker(
  namesrvAddr: string,
  credentials: BrokerCredentials | null,
  cluster: string = DEFAULT_CLUSTER,
): TraceBroker {
  return {
    async messagesOf(batchId): Promise<TracedMessage[]> {
      const brokers = await masterBrokers(parseAddress(namesrvAddr.split(';')[0] ?? '', credentials), cluster);
      if (brokers.length === 0) throw new Error(`${namesrvAddr} knows no broker of the cluster ${cluster}`);
      const found: TracedMessage[] = [];
      for (const broker of brokers) {
        for (const [kind, topic] of PLACES) {
          const messages = await readMessagesOfKey(broker, topic, batchId);
          found.push(...messages.map(({ storedAtMs }) => ({ kind, storedAtMs })));
        }
      }
      return found;
    },
  };
}

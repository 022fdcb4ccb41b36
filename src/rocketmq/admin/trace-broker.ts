import { TOPICS } from '../../core/topics.js';
import type { TraceBroker, TracedMessage } from '../../core/ports/trace-sources.js';
import { DEFAULT_CLUSTER, masterBrokers, parseAddress } from './broker-state.js';
import { findMessages } from './find-messages.js';

/** Where each kind of message of a batch is stored; half messages in a topic of the broker's own. */
const PLACES = [
  ['half', 'RMQ_SYS_TRANS_HALF_TOPIC'],
  ['committed', TOPICS.purchase],
  ['redriven', TOPICS.redrive],
] as const;

/** Asks every broker of the cluster over its admin protocol, which a gRPC endpoint does not speak. */
export function createTraceBroker(namesrvAddr: string, cluster: string = DEFAULT_CLUSTER): TraceBroker {
  return {
    async messagesOf(batchId): Promise<TracedMessage[]> {
      const brokers = await masterBrokers(parseAddress(namesrvAddr), cluster);
      if (brokers.length === 0) throw new Error(`${namesrvAddr} knows no broker of the cluster ${cluster}`);
      const found: TracedMessage[] = [];
      for (const broker of brokers) {
        for (const [kind, topic] of PLACES) {
          const times = await findMessages(broker, topic, batchId);
          found.push(...times.map((storedAtMs) => ({ kind, storedAtMs })));
        }
      }
      return found;
    },
  };
}

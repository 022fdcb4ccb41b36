import type { BrokerCredentials } from '../credentials.js';
import { TOPICS } from '../../core/topics.js';
import type { TraceBroker, TracedMessage } from '../../core/ports/trace-sources.js';
import { type BrokerAddress, DEFAULT_CLUSTER, masterBrokers, parseAddress } from './broker-state.js';
import { readMessagesOfKey } from './inspect-broker.js';

/** Where the broker keeps half messages. */
const HALVES = 'RMQ_SYS_TRANS_HALF_TOPIC';
/** Where each kind of message of a batch is stored. */
const PLACES = [
  ['half', HALVES],
  ['committed', TOPICS.purchase],
  ['redriven', TOPICS.redrive],
] as const;

/** Asks every broker of the cluster over the admin protocol, which a gRPC endpoint does not support. */
export function createTraceBroker(
  namesrvAddr: string,
  credentials: BrokerCredentials | null,
  cluster: string = DEFAULT_CLUSTER,
): TraceBroker {
  const brokersOf = async (): Promise<BrokerAddress[]> => {
    const brokers = await masterBrokers(parseAddress(namesrvAddr.split(';')[0] ?? '', credentials), cluster);
    if (brokers.length === 0) throw new Error(`${namesrvAddr} knows no broker of the cluster ${cluster}`);
    return brokers;
  };
  return {
    async halvesOf(traceId): Promise<string[]> {
      const found = (await brokersOf()).map((broker) => readMessagesOfKey(broker, HALVES, traceId));
      const bodies = (await Promise.all(found)).flat().map(({ body }) => body.toString('utf8'));
      return [...new Set(bodies)]; // one that was checked back is stored again
    },

    async messagesOf(batchId): Promise<TracedMessage[]> {
      const found: TracedMessage[] = [];
      for (const broker of await brokersOf()) {
        for (const [kind, topic] of PLACES) {
          const messages = await readMessagesOfKey(broker, topic, batchId);
          found.push(...messages.map(({ storedAtMs }) => ({ kind, storedAtMs })));
        }
      }
      return found;
    },
  };
}

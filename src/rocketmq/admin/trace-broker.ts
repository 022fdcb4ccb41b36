import type { BrokerAccess } from '../credentials.js';
import { HALF_TOPICS, TOPICS } from '../../core/topics.js';
import { type BrokerAddress, brokersKnownTo, SeenBrokers } from './broker-state.js';
import { readMessagesOfKey } from './inspect-broker.js';
import { RemotingError } from './remoting.js';

/** A message of a batch that the broker still has. Unix ms on the clock of the broker. */
export interface TracedMessage {
  /** A half message, a message that workers can see (committed), or a message that was published again. */
  readonly kind: 'half' | 'committed' | 'redriven';
  readonly storedAtMs: number;
}

/** A broker that may have part of the answer but did not give it. */
export interface SilentBroker {
  readonly name: string;
  readonly why: string;
}

export interface FromBrokers<T> {
  readonly found: readonly T[];
  /** Brokers whose data is missing. */
  readonly silent: readonly SilentBroker[];
}

/** Brokers forget messages after some days. Methods throw OperationalError rocketmq if no name server answers. */
export interface TraceBroker {
  /** @param without brokers to skip, because each silent one costs seconds */
  messagesOf(batchId: string, without?: ReadonlySet<string>): Promise<FromBrokers<TracedMessage>>;
  /** Returns bodies of half messages with this trace id as key, in any state. Nobody has verified their senders. */
  halvesOf(traceId: string): Promise<FromBrokers<string>>;
}

/** Where each kind of message of a batch is stored. */
const PLACES = [
  ['half', HALF_TOPICS.open],
  ['committed', TOPICS.purchase],
  ['redriven', TOPICS.redrive],
] as const;

/**
 * Uses the admin protocol, because gRPC endpoints lack these requests.
 * @param namesrvAddr one or more `host:port`, separated by `;`
 * @param seen brokers that other inspections have seen
 */
export function createTraceBroker(
  namesrvAddr: string,
  access: BrokerAccess | null,
  { cluster = null, seen = new SeenBrokers() }: { readonly cluster?: string | null; readonly seen?: SeenBrokers } = {},
): TraceBroker {
  /** Asks all brokers at once, so that brokers that hang cost two seconds only once. */
  const askAll = async <T>(
    ask: (broker: BrokerAddress) => Promise<readonly T[]>,
    without: ReadonlySet<string> = new Set(),
  ): Promise<FromBrokers<T>> => {
    const brokers = await brokersKnownTo(namesrvAddr, access, cluster);
    const silent: SilentBroker[] = seen.gone(brokers).map(({ name, why }) => ({ name, why }));
    const found = await Promise.all(
      brokers
        .filter(({ name }) => !without.has(name))
        .map((broker) =>
          ask(broker).catch((error: unknown): readonly T[] => {
            if (!(error instanceof RemotingError)) throw error;
            silent.push({ name: broker.name, why: error.message });
            return [];
          }),
        ),
    );
    return { found: found.flat(), silent };
  };
  return {
    async halvesOf(traceId): Promise<FromBrokers<string>> {
      const { found, silent } = await askAll((broker) => readMessagesOfKey(broker, HALF_TOPICS.open, traceId));
      const bodies = new Set(found.map(({ body }) => body.toString('utf8'))); // check-backs store copies
      return { found: [...bodies], silent };
    },

    messagesOf: (batchId, without) =>
      askAll(async (broker): Promise<TracedMessage[]> => {
        const messages: TracedMessage[] = [];
        for (const [kind, topic] of PLACES) {
          const found = await readMessagesOfKey(broker, topic, batchId);
          messages.push(...found.map(({ storedAtMs }) => ({ kind, storedAtMs })));
        }
        return messages;
      }, without),
  };
}

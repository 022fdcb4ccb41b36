import type {
  Broker,
  BrokerClient,
  ConsumerGroup,
  DiscardedHalf,
  HalfMessage,
  Message,
  MqList,
  MqStatus,
  Topic,
} from '../../contract/broker.js';
import { Places } from '../../core/places.js';
import type { Clock } from '../../core/ports/clock.js';
import { recent } from '../../core/recent.js';
import { OWN_GROUPS, type BrowseFrom } from './message-inspection.js';
import type { MessageInspection } from './rocketmq-inspection.js';

type DownBroker = MqList<unknown>['down'][number];

/** `onDown` receives each broker that does not answer. */
export type OpenInspection = (onDown: (broker: Broker) => void) => MessageInspection;

/** Maximum age of an answer that several operators share, in ms. */
const KEPT_MS = 1000;
/** Maximum age of a shared status, ms. A status takes dozens of requests to each broker. */
const STATUS_KEPT_MS = 3000;
/** Maximum number of concurrent reads of other kinds. Each sends several requests to every broker. */
const LOOKS_MAX = 2;
/** Maximum total length of the bodies in one answer, in characters. A single message may have 4 MiB. */
const BODIES_MAX = 4 * 1024 * 1024;

/** Operators share views without parameters for one to three seconds, so many open consoles cost as little as one. */
export class BrokerViews {
  /** Each of these throws OperationalError rocketmq if no name server answers. */
  readonly status: () => Promise<MqStatus>;
  readonly ownGroups: () => Promise<MqList<ConsumerGroup>>;
  readonly allGroups: () => Promise<MqList<ConsumerGroup>>;
  readonly topics: () => Promise<MqList<Topic>>;
  readonly halves: () => Promise<MqList<HalfMessage>>;
  readonly producers: () => Promise<MqList<BrokerClient>>;
  readonly #open: OpenInspection;
  readonly #places = new Places({ max: LOOKS_MAX });

  constructor(open: OpenInspection, clock: Clock) {
    this.#open = open;
    const shared = <T>(ask: () => Promise<T>, keptMs = KEPT_MS): (() => Promise<T>) => recent(ask, keptMs, clock);
    const readStatus = () => open(() => undefined).status(OWN_GROUPS); // the status itself names the brokers that are down
    this.status = shared(readStatus, STATUS_KEPT_MS);
    this.ownGroups = shared(() => this.#list((inspection) => inspection.groups(OWN_GROUPS)));
    this.allGroups = shared(() => this.#list((inspection) => inspection.groups(null)));
    this.topics = shared(() => this.#list((inspection) => inspection.topics()));
    this.producers = shared(() => this.#list((inspection) => inspection.producers()));
    this.halves = shared(async () => {
      const down: DownBroker[] = [];
      const { open: items, more } = await open((broker) => down.push(downOf(broker))).halves();
      return { items, more, down };
    });
  }

  /** Runs a read whose answer is not shared. @returns null if too many such reads are in progress */
  async look<T>(ask: () => Promise<T>): Promise<T | null> {
    const leave = this.#places.take();
    if (leave === null) return null;
    try {
      return await ask();
    } finally {
      leave();
    }
  }

  discarded(which: { readonly max: number } | { readonly key: string }): Promise<MqList<DiscardedHalf>> {
    return this.#list(
      (inspection) => inspection.discarded('max' in which ? { max: which.max + 1 } : which),
      'max' in which ? which.max : Infinity,
    );
  }

  consumers(group: string): Promise<MqList<BrokerClient>> {
    return this.#list(async (inspection) => (await inspection.consumers(group)).map((one) => ({ group, ...one })));
  }

  /** @param which messages with a key or an id, or after a position. Null for the newest */
  async messages(
    topic: string,
    which: { readonly key: string } | { readonly id: string } | BrowseFrom | null,
    max: number,
  ): Promise<MqList<Message>> {
    const down: DownBroker[] = [];
    const inspection = this.#open((broker) => down.push(downOf(broker)));
    if (which === null || !('key' in which || 'id' in which)) {
      const { messages, more } = await inspection.browse(topic, which, { max, bodiesMax: BODIES_MAX });
      return { items: messages, more, down };
    }
    const found =
      'key' in which
        ? await inspection.messagesOfKey(topic, which.key)
        : await inspection.messagesOfId(topic, which.id);
    const items = withinBodies(found.slice(0, max));
    return { items, more: items.length < found.length, down };
  }

  /** Returns the current half messages with a key, and how to resume them. @throws OperationalError rocketmq */
  async toResume(key: string): Promise<{
    readonly found: readonly DiscardedHalf[];
    readonly inspection: MessageInspection;
  }> {
    const inspection = this.#open(() => undefined);
    return { found: await inspection.discarded({ key }), inspection };
  }

  async #list<T>(ask: (inspection: MessageInspection) => Promise<readonly T[]>, max = Infinity): Promise<MqList<T>> {
    const down: DownBroker[] = [];
    const found = await ask(this.#open((broker) => down.push(downOf(broker))));
    return { items: found.slice(0, max), more: found.length > max, down };
  }
}

const downOf = ({ name, address, down }: Broker): DownBroker => ({ name, address, down: down ?? '' });

/** Returns at least one message, and otherwise as many as fit into an answer. */
function withinBodies(messages: readonly Message[]): readonly Message[] {
  let length = 0;
  const end = messages.findIndex(({ body }, index) => (length += body.length) > BODIES_MAX && index > 0);
  return end === -1 ? messages : messages.slice(0, end);
}

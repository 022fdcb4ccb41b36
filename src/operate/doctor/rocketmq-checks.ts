import {
  listed,
  ok,
  percent,
  perServer,
  risky,
  unknown,
  worstOf,
  wrong,
  type Check,
  type Judged,
} from '../../core/doctor/check.js';
import {
  CLOCK_WRONG_IF,
  judgeClock,
  judgeOpen,
  judgeTls,
  OPEN_RISKY_IF,
  OPEN_WRONG_IF,
  TLS_RISKY_IF,
  TLS_WRONG_IF,
  type Reach,
} from '../../core/doctor/reach.js';
import { judgeVersion } from '../../core/doctor/versions.js';
import { WRITER_GROUPS } from '../../core/topics.js';

/** One of our topics, with its required and its actual properties. */
interface TopicFacts {
  readonly topic: string;
  /** `NORMAL`, `DELAY` or `TRANSACTION`. */
  readonly wantedType: string;
  /** Null if the topic does not exist. */
  readonly found: {
    readonly type: string;
    readonly readQueues: number;
    readonly writeQueues: number;
    /** 6 means readable and writable. */
    readonly perm: number;
  } | null;
}

interface GroupFacts {
  readonly group: string;
  readonly wantedRetries: number;
  readonly found: { readonly retries: number; readonly consumes: boolean } | null;
}

/** A field is null if the broker has no such setting. */
export interface BrokerSettings {
  readonly transactionCheckMax: number | null;
  readonly transactionCheckInterval: number | null;
  readonly transactionTimeOut: number | null;
  /** Interval at which the broker records the answers of half messages. */
  readonly transactionOpBatchInterval: number | null;
  /** In hours. */
  readonly fileReservedTime: number | null;
  readonly autoCreateTopicEnable: boolean | null;
  readonly autoCreateSubscriptionGroup: boolean | null;
  readonly timerWheelEnable: boolean | null;
}

export interface BrokerFacts {
  readonly server: string;
  /** For example `5.4.0`. */
  readonly version: string;
  /** Fraction of the disk with the commit log that is in use, 0 to 1. */
  readonly diskUsed: number;
  /** Our clock minus the clock of the broker, accurate to half a second at best. Null if not reported. */
  readonly skewMs: number | null;
  /** Null if the broker does not show its settings. */
  readonly settings: BrokerSettings | null;
  readonly topics: readonly TopicFacts[];
  readonly groups: readonly GroupFacts[];
  /** Whether the broker serves a request without a key. */
  readonly strangers: 'served' | 'refused';
}

export interface OpenPort {
  /** The beginning of a sentence, such as `The gRPC port 8081`. */
  readonly what: string;
  readonly reach: Reach;
  readonly guarded: boolean;
}

export interface RocketmqFacts {
  /** The setting ROCKETMQ_ENDPOINT. `refusal` is a sentence why our topics cannot be reached there, or null. */
  readonly endpoint: { readonly place: string; readonly refusal: string | null; readonly reach: Reach };
  /** Whether the endpoint serves a client without a key. Null if unknown. */
  readonly strangers: 'served' | 'refused' | null;
  readonly encrypted: boolean;
  /** The setting NAMESRV_ADDR: `unset`, or why it knows no broker, as a sentence; null if it knows any. */
  readonly nameServer: { readonly problem: string | null } | 'unset';
  /** Brokers that answer. */
  readonly brokers: readonly BrokerFacts[];
  readonly silent: readonly { readonly server: string; readonly why: string }[];
  readonly ports: readonly OpenPort[];
  /** The setting MARKER_LIFE_MS. */
  readonly markerLifeMs: number;
}

const HOUR_MS = 3_600_000;
/** Minimum time before a half message is given up, because apis or Redis may be down for this long. */
const ASKED_FOR_MS = HOUR_MS;
/** How long a restart of all apis takes. */
const ASKED_FOR_LEAST_MS = 60_000;
/** The longest time that a deduct takes. A check-back before that would give up its batch. */
const FIRST_ASKED_MIN_MS = 6_000;
/** An order may wait a day for payment, and a broken broker may stay down overnight. */
const KEPT_MIN_HOURS = 24;
/** Fractions of disk in use. At the higher fraction, a broker deletes kept messages and soon refuses new ones. */
const DISK_WRONG = 0.85;
const DISK_RISKY = 0.75;
const READ_AND_WRITE = 6;
const TOPICS_TODO = 'Run: seckill topics.';

const bySettings =
  (judge: (settings: BrokerSettings, facts: RocketmqFacts) => Judged | null): Check<RocketmqFacts>['judge'] =>
  (facts) =>
    perServer(facts.brokers, ({ settings }) =>
      settings === null ? unknown('the broker does not show its settings') : judge(settings, facts),
    );

const byBroker =
  (judge: (broker: BrokerFacts) => Judged | null): Check<RocketmqFacts>['judge'] =>
  ({ brokers }) =>
    perServer(brokers, judge);

export const ROCKETMQ_CHECKS: readonly Check<RocketmqFacts>[] = [
  {
    id: 'rocketmq.answers',
    looksAt: 'whether each proxy answers, accepts the access key and knows the topics',
    wrongIf: 'one does not',
    judge: ({ endpoint: { place, refusal } }) =>
      refusal === null
        ? ok(place)
        : wrong(`${refusal}.`, 'Check ROCKETMQ_ENDPOINT, the key and the proxy, then run: seckill topics.'),
  },
  {
    id: 'rocketmq.name-server',
    looksAt: '`NAMESRV_ADDR`',
    wrongIf: 'no name server there knows a broker of the cluster',
    riskyIf: 'it is not set, so brokers are not checked',
    judge: ({ nameServer }) => {
      if (nameServer === 'unset') {
        return risky(
          'NAMESRV_ADDR is not set: repairs must estimate the progress of the workers, and brokers cannot be checked.',
          'Set it for apis, keepers and commands.',
        );
      }
      return nameServer.problem === null
        ? ok('knows the brokers')
        : wrong(`${nameServer.problem}.`, 'Check NAMESRV_ADDR, the cluster name, and that both servers run.');
    },
  },
  {
    id: 'rocketmq.brokers',
    looksAt: 'every master broker that the name server knows',
    wrongIf: 'a broker does not answer, or refuses the access key',
    judge: ({ brokers, silent }) => {
      if (silent.length > 0) {
        const said = silent.map(({ server, why }) => `${server} does not answer (${why})`).join('; ');
        return wrong(`${said}.`, 'Start it, or make its admin port reachable from this machine.');
      }
      return brokers.length === 0 ? null : ok(brokers.map(({ server }) => server).join(', '));
    },
  },
  {
    id: 'rocketmq.version',
    looksAt: 'the version of the brokers',
    wrongIf: 'it is too old',
    riskyIf: 'it is not tested, or has a known fault',
    judge: byBroker(({ version }) => judgeVersion('rocketmq', version)),
  },
  {
    id: 'rocketmq.tls',
    looksAt: 'whether the connection to the proxy is encrypted',
    wrongIf: TLS_WRONG_IF,
    riskyIf: TLS_RISKY_IF,
    judge: ({ encrypted, endpoint: { reach } }) =>
      judgeTls(encrypted ? 'TLS' : null, reach, 'Set ROCKETMQ_TLS (docs/security.md).'),
  },
  {
    id: 'rocketmq.access',
    looksAt: 'whether proxy and brokers serve clients without a key',
    wrongIf: 'one does so on the network',
    riskyIf: 'one does so on this machine',
    judge: ({ strangers, brokers, endpoint: { place, reach } }) => {
      const open = [
        ...(strangers === 'served' ? [`the proxy at ${place}`] : []),
        ...brokers.filter((broker) => broker.strangers === 'served').map(({ server }) => server),
      ];
      if (open.length === 0)
        return strangers === null && brokers.length === 0 ? null : ok('clients without a key are refused');
      const says = `Clients without a key may read and delete messages at ${listed(open)}.`;
      const todo = 'Switch on access control in brokers and proxies (docs/operations.md).';
      return reach.at === 'this_machine' ? risky(says, todo) : wrong(says, todo);
    },
  },
  {
    id: 'rocketmq.open',
    looksAt: 'who can reach the ports of proxy, brokers and name server',
    wrongIf: OPEN_WRONG_IF,
    riskyIf: OPEN_RISKY_IF,
    judge: ({ ports }) => {
      const judged = ports.map(({ what, reach, guarded }) => judgeOpen(what, reach, guarded));
      const worst = worstOf(judged);
      if (worst === null || !('todo' in worst)) return worst;
      const says = judged.filter(({ verdict }) => verdict === worst.verdict).map((one) => one.says);
      return { ...worst, says: says.join(' ') };
    },
  },
  {
    id: 'rocketmq.topics',
    looksAt: 'the topics: message type, queues, permission',
    wrongIf: 'one is missing, has another message type, is not readable and writable, or has queues without readers',
    judge: byBroker(({ topics }) => {
      const flaws = topics.flatMap(({ topic, wantedType, found }) => {
        if (found === null) return [`${topic} is missing`];
        if (found.type !== wantedType) return [`${topic} has the type ${found.type || 'NORMAL'}, not ${wantedType}`];
        if (found.perm !== READ_AND_WRITE) return [`${topic} may not be both read and written`];
        return found.readQueues < found.writeQueues ? [`${topic} has queues without readers`] : [];
      });
      return flaws.length === 0 ? ok(`${topics.length} as they should be`) : wrong(`${listed(flaws)}.`, TOPICS_TODO);
    }),
  },
  {
    id: 'rocketmq.groups',
    looksAt: 'the consumer groups and their retries',
    wrongIf: 'a group is missing or off, or a writer has unexpected retries',
    riskyIf: 'another group has unexpected retries',
    judge: byBroker(({ groups }) => {
      const broken: string[] = [];
      const other: string[] = [];
      for (const { group, wantedRetries, found } of groups) {
        if (found === null) broken.push(`${group} is missing`);
        else if (!found.consumes) broken.push(`${group} is switched off`);
        else if (found.retries !== wantedRetries) {
          const says = `${group} has ${found.retries} retries, not ${wantedRetries}`;
          (WRITER_GROUPS.has(group) ? broken : other).push(says);
        }
      }
      if (broken.length > 0) return wrong(`${listed(broken)}.`, TOPICS_TODO);
      return other.length > 0 ? risky(`${listed(other)}.`, TOPICS_TODO) : ok(`${groups.length} as they should be`);
    }),
  },
  {
    id: 'rocketmq.check-backs',
    looksAt: 'how long a broker checks back for a half message: `transactionCheckMax` × `transactionCheckInterval`',
    wrongIf: 'less than a minute',
    riskyIf: 'less than an hour',
    judge: bySettings(({ transactionCheckMax, transactionCheckInterval }) => {
      if (transactionCheckMax === null || transactionCheckInterval === null) return null;
      const askedForMs = transactionCheckMax * transactionCheckInterval;
      const askedFor = `${Math.round(askedForMs / 1000)} s`;
      if (askedForMs >= ASKED_FOR_MS) return ok(`${transactionCheckMax} times in ${askedFor}`);
      const says = `A broker checks back ${transactionCheckMax} times in ${askedFor} for a half message, and then gives up on it.`;
      const todo = 'Set transactionCheckMax=720 and transactionCheckInterval=5000.';
      return askedForMs < ASKED_FOR_LEAST_MS ? wrong(says, todo) : risky(says, todo);
    }),
  },
  {
    id: 'rocketmq.first-check',
    looksAt: '`transactionTimeOut`, and `transactionCheckInterval` against `transactionOpBatchInterval`',
    riskyIf: 'a broker checks back before a purchase is answered, or right after an answer',
    judge: bySettings(({ transactionTimeOut, transactionCheckInterval, transactionOpBatchInterval }) => {
      if (transactionTimeOut !== null && transactionTimeOut < FIRST_ASKED_MIN_MS) {
        return risky(
          `A broker checks back after ${transactionTimeOut} ms, so slow purchases are rolled back.`,
          'Set transactionTimeOut=10000.',
        );
      }
      if ((transactionCheckInterval ?? Infinity) <= (transactionOpBatchInterval ?? 0)) {
        return risky(
          `A broker checks back again for half messages that were already answered, and delivers them twice.`,
          `Set transactionCheckInterval above ${transactionOpBatchInterval}.`,
        );
      }
      return ok(transactionTimeOut === null ? 'by default' : `after ${transactionTimeOut} ms`);
    }),
  },
  {
    id: 'rocketmq.kept',
    looksAt: '`fileReservedTime`, for which a broker keeps messages',
    wrongIf: 'longer than `MARKER_LIFE_MS`',
    riskyIf: `less than ${KEPT_MIN_HOURS} hours`,
    judge: bySettings(({ fileReservedTime }, { markerLifeMs }) => {
      if (fileReservedTime === null) return null;
      if (fileReservedTime * HOUR_MS > markerLifeMs) {
        return wrong(
          `The broker keeps half messages for ${fileReservedTime} hours, but Redis remembers the end of a batch only for ${markerLifeMs / HOUR_MS} hours.`,
          `Set MARKER_LIFE_MS above ${fileReservedTime * HOUR_MS} in every program.`,
        );
      }
      return fileReservedTime < KEPT_MIN_HOURS
        ? risky(`The broker keeps messages for only ${fileReservedTime} hours.`, 'Set fileReservedTime=72.')
        : ok(`${fileReservedTime} hours`);
    }),
  },
  {
    id: 'rocketmq.auto-create',
    looksAt: '`autoCreateTopicEnable` and `autoCreateSubscriptionGroup`',
    riskyIf: 'one is on',
    judge: bySettings(({ autoCreateTopicEnable, autoCreateSubscriptionGroup }) => {
      const on = [
        ...(autoCreateTopicEnable === true ? ['autoCreateTopicEnable'] : []),
        ...(autoCreateSubscriptionGroup === true ? ['autoCreateSubscriptionGroup'] : []),
      ];
      if (on.length === 0) return ok('off');
      return risky(
        `${on.join(' and ')} on: a misspelled name becomes a topic or group without readers.`,
        `Set ${on.map((name) => `${name}=false`).join(' and ')}; seckill topics creates all that is needed.`,
      );
    }),
  },
  {
    id: 'rocketmq.timer',
    looksAt: '`timerWheelEnable`',
    wrongIf: 'it is off',
    judge: bySettings(({ timerWheelEnable }) =>
      timerWheelEnable === false
        ? wrong('timerWheelEnable is off: deadlines and retries do not arrive.', 'Set timerWheelEnable=true.')
        : ok('on'),
    ),
  },
  {
    id: 'rocketmq.disk',
    looksAt: 'the disk of the commit log',
    wrongIf: `it is ${percent(DISK_WRONG)} full: the broker deletes messages`,
    riskyIf: `it is ${percent(DISK_RISKY)} full`,
    judge: byBroker(({ diskUsed }) => {
      const says = `The disk of the commit log is ${percent(diskUsed)} full.`;
      const todo = 'Free some space, or use a larger disk.';
      if (diskUsed >= DISK_WRONG) return wrong(says, todo);
      return diskUsed >= DISK_RISKY ? risky(says, todo) : ok(`${percent(diskUsed)} full`);
    }),
  },
  {
    id: 'rocketmq.clock',
    looksAt: 'the clocks of the brokers and of this machine',
    wrongIf: CLOCK_WRONG_IF,
    judge: byBroker(({ skewMs }) =>
      skewMs === null ? unknown('the broker does not show its time') : judgeClock(skewMs),
    ),
  },
];

import { answers, ok, percent, perServer, risky, unknown, wrong, worstOf, type Check } from './check.js';
import {
  CLOCK_WRONG_IF,
  DISK_RISKY_IF,
  DISK_WRONG_IF,
  judgeClock,
  judgeDisk,
  judgeOpen,
  judgeTls,
  OPEN_RISKY_IF,
  OPEN_WRONG_IF,
  TLS_RISKY_IF,
  TLS_WRONG_IF,
  type FreeShare,
  type Reach,
} from './reach.js';
import { judgeVersion } from './versions.js';

/** Facts about a server that a program needs before it stores stock there. */
export interface RedisStartFacts {
  /** The setting `maxmemory-policy`. */
  readonly evictionPolicy: string;
  readonly appendOnly: boolean;
  /** Our clock minus the server's. */
  readonly skewMs: number;
}

/** Facts that one server reports. A field is null if the server does not show the value. */
export interface RedisServerFacts extends RedisStartFacts {
  /** `host:port`. */
  readonly server: string;
  readonly product: 'redis' | 'valkey';
  readonly version: string;
  /** Our user name at the server. */
  readonly user: string | null;
  /** Whether the server serves a connection without a login. */
  readonly strangers: 'served' | 'refused' | null;
  readonly encrypted: boolean;
  readonly isMaster: boolean;
  /** Number of connected replicas. */
  readonly replicas: number;
  /** The setting `min-replicas-to-write`. */
  readonly replicasNeeded: number | null;
  /** The setting `appendfsync`. */
  readonly fsync: string | null;
  readonly lastAppendFailed: boolean;
  readonly lastRewriteFailed: boolean;
  readonly usedBytes: number;
  /** Whether `maxmemory` is set. */
  readonly hasLimit: boolean;
  /** Maximum memory of the server. Without a limit, the memory of its machine. 0 if not reported. */
  readonly maxBytes: number;
  /** Null if the server is not part of a cluster. */
  readonly cluster: { readonly isUp: boolean; readonly needsAllSlots: boolean | null } | null;
  readonly reach: Reach;
  readonly disk: FreeShare;
}

export interface RedisFacts {
  /** A single server, or the masters of a cluster. */
  readonly servers: readonly RedisServerFacts[];
  /** The setting REDIS_WAIT_REPLICAS. */
  readonly waitReplicas: number;
}

/** Fractions of memory in use. Full memory stops all sales; at the lower fraction there is still time to act. */
const MEMORY_RISKY = 0.75;
const MEMORY_WRONG = 0.9;

/** A program does not start if one of these checks fails. Run against all servers. */
export const REDIS_START_CHECKS: readonly Check<RedisStartFacts>[] = [
  {
    id: 'redis.eviction',
    looksAt: '`maxmemory-policy`',
    wrongIf: 'it is not `noeviction`',
    stopsPrograms: true,
    judge: ({ evictionPolicy }) =>
      evictionPolicy === 'noeviction'
        ? ok('noeviction')
        : wrong(`maxmemory-policy is ${evictionPolicy}, so Redis may evict stock.`, 'Set it to noeviction.'),
  },
  {
    id: 'redis.append-only',
    looksAt: '`appendonly`',
    wrongIf: 'it is off',
    stopsPrograms: true,
    judge: ({ appendOnly }) =>
      appendOnly
        ? ok('yes')
        : wrong('appendonly is no: a restart loses purchases that MySQL does not have.', 'Set it to yes.'),
  },
  {
    id: 'redis.clock',
    looksAt: 'the clocks of Redis and of this machine',
    wrongIf: CLOCK_WRONG_IF,
    stopsPrograms: true,
    judge: ({ skewMs }) => judgeClock(skewMs),
  },
];

const ofServers =
  (judge: Check<RedisServerFacts>['judge']) =>
  ({ servers }: RedisFacts) =>
    perServer(servers, judge);

const SERVER_CHECKS: readonly Check<RedisServerFacts>[] = [
  {
    id: 'redis.version',
    looksAt: 'the version of Redis or Valkey',
    wrongIf: 'it is too old',
    riskyIf: 'it is not tested, or has a known fault',
    judge: ({ product, version }) => judgeVersion(product, version),
  },
  {
    id: 'redis.tls',
    looksAt: 'whether the connection is encrypted',
    wrongIf: TLS_WRONG_IF,
    riskyIf: TLS_RISKY_IF,
    judge: ({ encrypted, reach }) =>
      judgeTls(encrypted ? 'TLS' : null, reach, 'Begin REDIS_URL with rediss (docs/security.md).'),
  },
  {
    id: 'redis.access',
    looksAt: 'the user (`ACL WHOAMI`), and whether Redis serves clients without a login',
    wrongIf: 'it serves every client on the network',
    riskyIf: 'it serves every client on this machine',
    judge: ({ user, strangers, reach }) => {
      const todo = 'Set a password or ACL users in Redis, and put the login into REDIS_URL.';
      if (strangers === 'served') {
        return reach.at === 'this_machine'
          ? risky('Redis serves every user of this machine without a login.', todo)
          : wrong('Redis serves everyone on the network without a login.', todo);
      }
      if (strangers === null) return unknown('this program could not test a connection without a login');
      return ok(`user ${user ?? 'unknown'}; Redis refuses clients without a login`);
    },
  },
  {
    id: 'redis.open',
    looksAt: 'who can reach the port of Redis',
    wrongIf: OPEN_WRONG_IF,
    riskyIf: OPEN_RISKY_IF,
    judge: ({ server, reach, strangers }) => judgeOpen(`Redis at ${server}`, reach, strangers !== 'served'),
  },
  ...REDIS_START_CHECKS,
  {
    id: 'redis.fsync',
    looksAt: '`appendfsync`',
    riskyIf: 'it is `no`: a power cut loses half a minute',
    judge: ({ fsync }) => {
      if (fsync === null) return unknown('Redis does not show appendfsync');
      if (fsync !== 'no') return ok(fsync);
      return risky('appendfsync is no: a power cut may lose half a minute of sales.', 'Set it to everysec or always.');
    },
  },
  {
    id: 'redis.writes-log',
    looksAt: 'the last write and the last rewrite of the append-only file',
    wrongIf: 'the write failed',
    riskyIf: 'the rewrite failed: the file grows',
    judge: ({ lastAppendFailed, lastRewriteFailed }) => {
      const todo = 'Read the log of Redis. Usually its disk is full.';
      if (lastAppendFailed) return wrong('Redis could not write its append-only file and refuses all writes.', todo);
      return lastRewriteFailed
        ? risky('Redis could not rewrite its append-only file, which grows.', todo)
        : ok('written');
    },
  },
  {
    id: 'redis.role',
    looksAt: 'whether it is a master',
    wrongIf: 'it is a replica',
    judge: ({ isMaster }) =>
      isMaster
        ? ok('master')
        : wrong('It is a replica, which refuses writes.', 'Let REDIS_URL name the master, or its sentinels.'),
  },
  {
    id: 'redis.memory',
    looksAt: 'the used share of `maxmemory`, or of the memory of its machine',
    wrongIf: `more than ${percent(MEMORY_WRONG)}`,
    riskyIf: `more than ${percent(MEMORY_RISKY)}; or \`maxmemory\` is not set`,
    judge: ({ usedBytes, hasLimit, maxBytes }) => {
      const noLimit = risky(
        'maxmemory is not set: when the memory of the machine is full, Linux kills Redis.',
        'Set maxmemory to at most two thirds of the memory of the machine; a rewrite of the append-only file needs the rest.',
      );
      if (maxBytes === 0) return hasLimit ? unknown('Redis does not show its maximum memory') : noLimit;
      const share = usedBytes / maxBytes;
      const says = `Redis uses ${percent(share)} of its maximum memory.`;
      const todo = 'Raise maxmemory, or use a larger machine.';
      if (share > MEMORY_WRONG) return wrong(says, todo);
      if (!hasLimit) return noLimit;
      return share > MEMORY_RISKY ? risky(says, todo) : ok(`${percent(share)} used`);
    },
  },
  {
    id: 'redis.disk',
    looksAt: 'the disk of Redis, if it is on this machine',
    wrongIf: DISK_WRONG_IF,
    riskyIf: DISK_RISKY_IF,
    judge: ({ disk }) => judgeDisk('the append-only file', disk),
  },
  {
    id: 'redis.cluster',
    looksAt: 'the state of a cluster, and `cluster-require-full-coverage`',
    wrongIf: 'the cluster is down',
    riskyIf: 'all sales stop when one master is down',
    judge: ({ cluster }) => {
      if (cluster === null) return null;
      if (!cluster.isUp) return wrong('The cluster is down.', 'Run CLUSTER INFO and CLUSTER NODES.');
      if (cluster.needsAllSlots !== true) return ok('up');
      return risky('All sales stop when one master is down.', 'Set cluster-require-full-coverage to no.');
    },
  },
];

/** Checks of each Redis server, and of the conditions that REDIS_WAIT_REPLICAS depends on. */
export const REDIS_CHECKS: readonly Check<RedisFacts>[] = [
  ...SERVER_CHECKS.map((check) => ({ ...check, judge: ofServers(check.judge) })),
  {
    id: 'redis.replicas',
    looksAt: 'connected replicas',
    wrongIf: 'there are fewer than `REDIS_WAIT_REPLICAS` or `min-replicas-to-write`',
    riskyIf: 'there is no replica',
    judge: ({ servers, waitReplicas }) =>
      perServer(servers, ({ replicas, replicasNeeded }) => {
        const todo = 'Connect more replicas.';
        const connected = replicas === 1 ? '1 is connected' : `${replicas} are connected`;
        return worstOf([
          waitReplicas > replicas
            ? wrong(
                `REDIS_WAIT_REPLICAS is ${waitReplicas} and ${connected}: every purchase is answered outcome_unknown.`,
                todo,
              )
            : null,
          (replicasNeeded ?? 0) > replicas
            ? wrong(`min-replicas-to-write is ${replicasNeeded} and ${connected}: Redis refuses writes.`, todo)
            : null,
          replicas === 0
            ? risky(
                'There is no replica: if this server is lost, sales stop until they are rebuilt from MySQL.',
                'Add a replica, and sentinels or a cluster to promote it.',
              )
            : ok(connected),
        ]);
      }),
  },
];

export const REDIS_ANSWERS = answers('redis', 'whether Redis answers and accepts the login');

import { lostTail } from '../lost-tail.js';
import { answers, listed, ok, risky, unknown, wrong, type Check, type Judged } from './check.js';
import {
  CLOCK_WRONG_IF,
  DISK_RISKY_IF,
  DISK_WRONG_IF,
  judgeClock,
  judgeDisk,
  judgeOpen,
  judgeTls,
  TLS_RISKY_IF,
  TLS_WRONG_IF,
  type FreeShare,
  type Reach,
} from './reach.js';
import { judgeVersion } from './versions.js';

/** Facts that a program needs before it writes orders: our session as the server sees it, and our tables. */
export interface MysqlStartFacts {
  /** Isolation level of our session, such as `READ-COMMITTED`. */
  readonly isolation: string;
  readonly sqlMode: readonly string[];
  readonly timeZone: string;
  /** Bytes. */
  readonly maxAllowedPacket: number;
  readonly logBin: boolean;
  /** `ROW`, `MIXED` or `STATEMENT`. Empty if the server lacks the setting. */
  readonly binlogFormat: string;
  /** Our columns that do not compare byte by byte, as `table.column collation`. */
  readonly looseCollations: readonly string[];
  /** Our tables without transactions, as `table engine`. */
  readonly otherEngines: readonly string[];
  /** Whether SKIP LOCKED skips a row locked by another session. Null if there was no row to try. */
  readonly skipsLocked: boolean | null;
}

export interface ReplicationFacts {
  /** Number of connected replicas. Null if the server does not show it to our user. */
  readonly replicas: number | null;
  /** Null if semi-synchronous replication is off, or the server does not have it. */
  readonly semiSync: {
    /** `AFTER_SYNC` or `AFTER_COMMIT`. */
    readonly waitPoint: string;
    /** Whether commits wait for a replica at present. They stop waiting when no replica answers in time. */
    readonly waitsNow: boolean;
    /** Number of connected replicas that acknowledge transactions. */
    readonly replicas: number;
  } | null;
}

export interface MysqlFacts extends MysqlStartFacts {
  /** Version as the server reports it, `VERSION()` and `@@version_comment`. */
  readonly version: string;
  readonly versionComment: string;
  /** Cipher of the connection. Null if the connection is not encrypted. */
  readonly cipher: string | null;
  /** Our user, as `user@host`. */
  readonly user: string;
  /** Rights of the user on every database. */
  readonly globalRights: readonly string[];
  /** Our clock minus the server's. */
  readonly skewMs: number;
  readonly readOnly: boolean;
  /** `innodb_flush_log_at_trx_commit`. */
  readonly flushAtCommit: number;
  readonly syncBinlog: number;
  readonly replication: ReplicationFacts;
  /** The number that the next event will get. Null if there are no tables. */
  readonly nextEvent: string | null;
  /** The highest number of a published event, as Redis knows it. Null if unknown. */
  readonly published: bigint | null;
  readonly maxConnections: number;
  /** Connection limit per user. 0 if users have no limit of their own. */
  readonly maxUserConnections: number;
  /** Names of migrations that have not been applied. */
  readonly missingMigrations: readonly string[];
  readonly unknownMigrations: readonly string[];
  readonly witness: 'off' | 'watch' | 'act';
  /** Settings of the binary log by name, in capitals. Undefined for a setting that the server does not have. */
  readonly binlog: Readonly<Record<string, string | undefined>>;
  readonly poolMax: number;
  /** Number of processes that report as running. Null if unknown. */
  readonly programs: number | null;
  readonly reach: Reach;
  readonly disk: FreeShare;
}

/**
 * A dead letter has up to 4 MiB (src/mysql/dead-letters.ts); escaping may double it. Servers use powers of two.
 */
const PACKET_MIN = 16 * 1024 * 1024;
/** Minimum number of programs: an api, a worker and a keeper. */
const PROGRAMS_LEAST = 3;
/** Connections reserved for people, backups and monitoring. */
const CONNECTIONS_SPARE = 10;

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;

const PROXY_TODO =
  'Every connection of Seckill sets it. A proxy in front of MySQL must keep session settings, or be removed.';

/** Checks that stop a program at its start. */
export const MYSQL_START_CHECKS: readonly Check<MysqlStartFacts>[] = [
  {
    id: 'mysql.isolation',
    looksAt: 'the isolation level of our sessions',
    wrongIf: 'it is not `READ COMMITTED`',
    stopsPrograms: true,
    judge: ({ isolation }) =>
      isolation === 'READ-COMMITTED'
        ? ok(isolation)
        : wrong(`Sessions of Seckill have the isolation level ${isolation} instead of READ-COMMITTED.`, PROXY_TODO),
  },
  {
    id: 'mysql.sql-mode',
    looksAt: 'the SQL mode of our sessions',
    wrongIf: 'it is not strict, or a backslash does not escape',
    stopsPrograms: true,
    judge: ({ sqlMode }) => {
      if (!sqlMode.some((mode) => mode === 'STRICT_ALL_TABLES' || mode === 'STRICT_TRANS_TABLES')) {
        return wrong(
          'The SQL mode of the sessions of Seckill is not strict: MySQL truncates values silently.',
          PROXY_TODO,
        );
      }
      return sqlMode.includes('NO_BACKSLASH_ESCAPES')
        ? wrong(
            'The SQL mode of the sessions of Seckill is NO_BACKSLASH_ESCAPES, so escaped text can end a string early.',
            PROXY_TODO,
          )
        : ok('strict');
    },
  },
  {
    id: 'mysql.time-zone',
    looksAt: 'the time zone of our sessions',
    wrongIf: 'it is not UTC',
    stopsPrograms: true,
    judge: ({ timeZone }) =>
      timeZone === '+00:00'
        ? ok('UTC')
        : wrong(`Sessions of Seckill have the time zone ${timeZone} instead of +00:00.`, PROXY_TODO),
  },
  {
    id: 'mysql.packet',
    looksAt: '`max_allowed_packet`',
    wrongIf: `it is below ${mebibytes(PACKET_MIN)}`,
    stopsPrograms: true,
    judge: ({ maxAllowedPacket }) =>
      maxAllowedPacket >= PACKET_MIN
        ? ok(mebibytes(maxAllowedPacket))
        : wrong(
            `max_allowed_packet is ${maxAllowedPacket} bytes: a large dead letter cannot be parked.`,
            `Set it to ${mebibytes(PACKET_MIN)} or more.`,
          ),
  },
  {
    id: 'mysql.binlog-format',
    looksAt: '`binlog_format`, if there is a binary log',
    wrongIf: 'it is `STATEMENT`',
    stopsPrograms: true,
    judge: ({ logBin, binlogFormat }) => {
      if (!logBin) return null;
      return binlogFormat === 'STATEMENT'
        ? wrong('binlog_format is STATEMENT: MySQL refuses writes with READ COMMITTED.', 'Set it to ROW.')
        : ok(binlogFormat === '' ? 'ROW' : binlogFormat);
    },
  },
  {
    id: 'mysql.collations',
    looksAt: 'the collations of the columns',
    wrongIf: 'a column does not compare byte by byte',
    stopsPrograms: true,
    judge: ({ looseCollations }) =>
      looseCollations.length === 0
        ? ok('byte by byte')
        : wrong(
            `Ids that differ only by case are equal in ${listed(looseCollations)}.`,
            'Give these columns the collation that src/mysql/migrations.ts names.',
          ),
  },
  {
    id: 'mysql.engines',
    looksAt: 'the storage engine of the tables',
    wrongIf: 'a table is not InnoDB',
    stopsPrograms: true,
    judge: ({ otherEngines }) =>
      otherEngines.length === 0
        ? ok('InnoDB')
        : wrong(`These tables have no transactions: ${listed(otherEngines)}.`, 'ALTER TABLE … ENGINE=InnoDB for each.'),
  },
  {
    id: 'mysql.locks',
    looksAt: 'whether `FOR UPDATE SKIP LOCKED` skips locked rows',
    wrongIf: 'it does not, as in TiDB',
    stopsPrograms: true,
    judge: ({ skipsLocked }) => {
      if (skipsLocked === null) return null;
      return skipsLocked
        ? ok('rows are locked')
        : wrong(
            'FOR UPDATE SKIP LOCKED returns rows that another session has locked, so two programs would do the same work.',
            'Use MySQL or MariaDB.',
          );
    },
  },
];

/** Builds of MySQL itself, by `@@version_comment`. We do not test forks or other servers. */
const MYSQL_BUILD = /^(MySQL |Source distribution|\((Ubuntu|Debian)\)|Homebrew)/;
/** For example `8.0.36`, with the suffixes of builds of MySQL itself. */
const MYSQL_VERSION = /^\d+(\.\d+)*(-(log|debug|commercial|cluster|\d+ubuntu\S*|\d+))*$/;

/** Returns the server product. Many products speak the protocol of MySQL and report version 8.0. */
export function engineOf(version: string, versionComment: string): 'mysql' | 'mariadb' | { readonly name: string } {
  if (/mariadb/i.test(`${version} ${versionComment}`)) return 'mariadb';
  if (MYSQL_BUILD.test(versionComment) && MYSQL_VERSION.test(version)) return 'mysql';
  return { name: `This server (${version}, ${versionComment || 'no comment'})` };
}

const judgeOther = (name: string): Judged =>
  risky(
    `${name} is neither MySQL nor MariaDB, and is not tested.`,
    'Use MySQL or MariaDB, or run the tests on it first.',
  );

const LACKS = 'a replica that takes over may lack the last orders';

function judgeReplication({ replicas, semiSync }: ReplicationFacts): Judged {
  if (semiSync === null) {
    if (replicas === 0) return ok('one server, no replica: if it dies, orders wait until it is back');
    if (replicas === null)
      return unknown(`MySQL does not show whether it has a replica. Without semi-synchronous replication, ${LACKS}`);
    return risky(
      `Replication is asynchronous (replicas: ${replicas}): ${LACKS}.`,
      'Use semi-synchronous replication (docs/durability.md).',
    );
  }
  if (!semiSync.waitsNow || semiSync.replicas === 0) {
    return risky(
      `No replica answers in time, so commits do not wait for one: ${LACKS}.`,
      'Check the replicas and their connections.',
    );
  }
  return semiSync.waitPoint === 'AFTER_SYNC'
    ? ok(`semi-synchronous, replicas that answer: ${semiSync.replicas}. One that takes over has every order`)
    : risky(
        `Commits wait at ${semiSync.waitPoint}, so an event may be published and then lost: ${LACKS}.`,
        'Set the wait point to AFTER_SYNC.',
      );
}

/** Rights of a replica. MariaDB calls the second right BINLOG MONITOR. */
const REPLICA_RIGHTS: readonly (readonly string[])[] = [
  ['REPLICATION SLAVE'],
  ['REPLICATION CLIENT', 'BINLOG MONITOR'],
];
const ALL_RIGHTS = ['ALL PRIVILEGES', 'SUPER'];

/** The settings that the witness needs. A setting that the server lacks is ignored. */
const WITNESS_SETTINGS = {
  binlog_format: 'ROW',
  binlog_row_image: 'FULL',
  binlog_row_metadata: 'FULL',
  binlog_transaction_compression: 'OFF',
  binlog_row_value_options: '',
} as const;

export type WitnessFacts = Pick<MysqlFacts, 'logBin' | 'binlog' | 'user' | 'globalRights'>;

/** Also asked by the witness before it follows the log. */
export function judgeWitness({ logBin, binlog, user, globalRights }: WitnessFacts): Judged {
  if (!logBin) return wrong('The witness has no binary log to read.', 'Switch it on (log_bin), or set WITNESS to off.');
  const others = Object.entries(WITNESS_SETTINGS).filter(([name, value]) => (binlog[name] ?? value) !== value);
  if (others.length > 0) {
    const found = others.map(([name]) => `${name} is ${binlog[name]}`).join(', ');
    const todo = others.map(([name, value]) => `${name} to ${value || "''"}`).join(', ');
    return wrong(`The witness cannot read every change: ${found}.`, `Set ${todo}.`);
  }
  const hasAll = globalRights.some((right) => ALL_RIGHTS.includes(right));
  const lacks = hasAll ? [] : REPLICA_RIGHTS.filter((names) => !names.some((name) => globalRights.includes(name)));
  if (lacks.length === 0) return ok('sees every change');
  const rights = lacks.map(([name]) => name).join(', ');
  return wrong(`${user} may not read the binary log.`, `GRANT ${rights} ON *.* TO this user.`);
}

export const MYSQL_CHECKS: readonly Check<MysqlFacts>[] = [
  {
    id: 'mysql.version',
    looksAt: 'the version of MySQL or MariaDB',
    wrongIf: 'it is too old',
    riskyIf: 'it is not tested, has a known fault, or is another server with the protocol of MySQL',
    judge({ version, versionComment }) {
      const engine = engineOf(version, versionComment);
      return engine === 'mysql' || engine === 'mariadb' ? judgeVersion(engine, version) : judgeOther(engine.name);
    },
  },
  {
    id: 'mysql.tls',
    looksAt: 'whether the connection is encrypted (`Ssl_cipher`)',
    wrongIf: TLS_WRONG_IF,
    riskyIf: TLS_RISKY_IF,
    judge: ({ cipher, reach }) => judgeTls(cipher, reach, 'Set MYSQL_TLS to on (docs/security.md).'),
  },
  {
    id: 'mysql.rights',
    looksAt: 'the rights of the user (`SHOW GRANTS`)',
    riskyIf: 'it has rights on every database',
    judge({ user, globalRights, witness }) {
      const rights = globalRights.filter((right) => witness === 'off' || !REPLICA_RIGHTS.flat().includes(right));
      return rights.length === 0
        ? ok(`${user}; rights on its database only`)
        : risky(
            `${user} may ${listed(rights)} on every database.`,
            'Give the programs a user with rights on their database only.',
          );
    },
  },
  {
    id: 'mysql.open',
    looksAt: 'who can reach the port of MySQL',
    riskyIf: 'it is open on a public address, or on every address of this machine',
    judge: ({ reach }) => judgeOpen('MySQL', reach, true),
  },
  {
    id: 'mysql.schema',
    looksAt: 'the tables',
    wrongIf: 'a migration is missing',
    riskyIf: 'they are from a newer release',
    judge: ({ missingMigrations, unknownMigrations }) => {
      if (missingMigrations.length > 0) {
        return wrong(`These migrations are missing: ${listed(missingMigrations)}.`, 'Run: seckill migrate.');
      }
      return unknownMigrations.length === 0
        ? ok('up to date')
        : risky(
            `A newer release ran these migrations: ${listed(unknownMigrations)}.`,
            'Use the newer release everywhere.',
          );
    },
  },
  ...MYSQL_START_CHECKS,
  {
    id: 'mysql.writable',
    looksAt: '`read_only`',
    wrongIf: 'it is on',
    judge: ({ readOnly }) =>
      readOnly
        ? wrong('MySQL is read-only.', 'Let MYSQL_URL name the primary server, or set read_only to OFF.')
        : ok('takes writes'),
  },
  {
    id: 'mysql.flush',
    looksAt: '`innodb_flush_log_at_trx_commit`',
    wrongIf: 'it is 0: a crash of MySQL loses orders',
    riskyIf: 'it is 2: a crash of the host does',
    judge: ({ flushAtCommit }) => {
      const todo = 'Set innodb_flush_log_at_trx_commit to 1.';
      if (flushAtCommit === 1) return ok('at every commit');
      return flushAtCommit === 0
        ? wrong('innodb_flush_log_at_trx_commit is 0: a crash of MySQL loses the orders of up to a second.', todo)
        : risky(`innodb_flush_log_at_trx_commit is ${flushAtCommit}: a crash of the host loses orders.`, todo);
    },
  },
  {
    id: 'mysql.binlog',
    looksAt: 'the binary log, and `sync_binlog`',
    riskyIf: 'it is off, or is not flushed at each commit',
    judge: ({ logBin, syncBinlog }) => {
      if (!logBin) {
        return risky(
          'There is no binary log: a lost disk costs every order since the last backup, and no replica can follow.',
          'Switch it on (log_bin), and store it on another disk or server.',
        );
      }
      return syncBinlog === 1
        ? ok('flushed at every commit')
        : risky(
            `sync_binlog is ${syncBinlog}: after a crash, orders are missing from the log.`,
            'Set sync_binlog to 1.',
          );
    },
  },
  {
    id: 'mysql.witness',
    looksAt: 'settings and rights for the witness, unless `WITNESS` is `off`',
    wrongIf: 'it cannot read every change in the binary log',
    judge: (facts) => (facts.witness === 'off' ? null : judgeWitness(facts)),
  },
  {
    id: 'mysql.last-writes',
    looksAt: 'the next event number, and the highest that Redis knows',
    wrongIf: 'it is already used: MySQL has lost its last writes',
    judge: ({ nextEvent, published }) => {
      if (published === null) return null;
      const lost = lostTail(nextEvent, published);
      return lost === null
        ? ok('complete')
        : wrong(lost, 'Stop all programs, and run: seckill restored (docs/durability.md).');
    },
  },
  {
    id: 'mysql.replica',
    looksAt: 'the replicas, and semi-synchronous replication',
    riskyIf: 'a replica that takes over may lack the last orders',
    judge: ({ replication }) => judgeReplication(replication),
  },
  {
    id: 'mysql.connections',
    looksAt: 'the sum of `MYSQL_POOL_MAX` of all programs',
    wrongIf: 'it exceeds `max_connections` or `max_user_connections`',
    riskyIf: 'it does if each program runs twice',
    judge: ({ poolMax, programs, maxConnections, maxUserConnections }) => {
      const count = Math.max(programs ?? 0, PROGRAMS_LEAST);
      const needed = count * poolMax;
      const perUser = maxUserConnections > 0 && maxUserConnections < maxConnections - CONNECTIONS_SPARE;
      const takes = perUser ? maxUserConnections : maxConnections - CONNECTIONS_SPARE;
      const limit = perUser
        ? `max_user_connections is ${maxUserConnections}`
        : `max_connections is ${maxConnections}, of which ${CONNECTIONS_SPARE} are left for others`;
      const sum = `${count} programs with MYSQL_POOL_MAX ${poolMax} open up to ${needed} connections`;
      const todo = `Raise ${perUser ? 'max_user_connections' : 'max_connections'}, or lower MYSQL_POOL_MAX.`;
      if (needed > takes) return wrong(`${sum}: ${limit}.`, todo);
      if (2 * needed > takes) return risky(`${sum}, twice as many during a rolling update: ${limit}.`, todo);
      return ok(`${needed} of ${takes} at most`);
    },
  },
  {
    id: 'mysql.disk',
    looksAt: 'the disk of MySQL, if it is on this machine',
    wrongIf: DISK_WRONG_IF,
    riskyIf: DISK_RISKY_IF,
    judge: ({ disk }) => judgeDisk('the tables of MySQL', disk),
  },
  {
    id: 'mysql.clock',
    looksAt: 'the clocks of MySQL and of this machine',
    wrongIf: CLOCK_WRONG_IF,
    judge: ({ skewMs }) => judgeClock(skewMs),
  },
];

export const MYSQL_ANSWERS = answers('mysql', 'whether MySQL answers and accepts the login');

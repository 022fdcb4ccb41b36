import { OperationalError } from '../core/errors.js';

export type MysqlErrorKind =
  | 'duplicate'
  | 'deadlock'
  | 'lock_wait'
  | 'connection_lost'
  | 'timed_out'
  | 'too_slow'
  | 'too_busy'
  | 'disk_full'
  | 'read_only'
  | 'bad_value'
  | 'denied'
  | 'schema'
  | 'unfit'
  | 'other';

/** `retryable`: the same call may succeed later. `connectionUsable`: the session can be used again. */
interface Kind {
  readonly retryable: boolean;
  readonly connectionUsable: boolean;
}

const KINDS: Record<MysqlErrorKind, Kind> = {
  duplicate: { retryable: false, connectionUsable: true },
  deadlock: { retryable: true, connectionUsable: true },
  lock_wait: { retryable: true, connectionUsable: true },
  connection_lost: { retryable: true, connectionUsable: false },
  timed_out: { retryable: true, connectionUsable: false },
  // The server itself ended only this statement.
  too_slow: { retryable: true, connectionUsable: true },
  too_busy: { retryable: true, connectionUsable: false },
  disk_full: { retryable: true, connectionUsable: true },
  // The server may have become a replica, and only a new connection finds the primary.
  read_only: { retryable: true, connectionUsable: false },
  bad_value: { retryable: false, connectionUsable: true },
  // An operator is rotating a password or running the migrations, so the batch is not the cause.
  denied: { retryable: true, connectionUsable: false },
  schema: { retryable: true, connectionUsable: true },
  // An operator has to act; the next connection may reach another server.
  unfit: { retryable: true, connectionUsable: false },
  other: { retryable: false, connectionUsable: false },
};

/** Sources: MySQL 8.0 Server Error Message Reference, MariaDB Error Codes. Unlisted numbers become `other`. */
const SERVER_ERRORS: Readonly<Record<number, MysqlErrorKind>> = {
  1062: 'duplicate', // ER_DUP_ENTRY
  1213: 'deadlock', // ER_LOCK_DEADLOCK: the whole transaction is rolled back
  1614: 'deadlock', // ER_XA_RBDEADLOCK
  1020: 'deadlock', // ER_CHECKREAD: MariaDB with innodb_snapshot_isolation
  1205: 'lock_wait', // ER_LOCK_WAIT_TIMEOUT: only the statement is rolled back
  3572: 'lock_wait', // ER_LOCK_NOWAIT

  1021: 'disk_full', // ER_DISK_FULL
  1114: 'disk_full', // ER_RECORD_FILE_FULL
  1041: 'too_busy', // ER_OUT_OF_RESOURCES: memory
  1026: 'disk_full', // ER_ERROR_ON_WRITE
  1030: 'disk_full', // ER_GET_ERRNO: the storage engine failed, most often for lack of space
  1180: 'disk_full', // ER_ERROR_DURING_COMMIT
  1290: 'read_only', // ER_OPTION_PREVENTS_STATEMENT: --read-only
  1792: 'read_only', // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
  1836: 'read_only', // ER_READ_ONLY_MODE

  1047: 'read_only', // ER_UNKNOWN_COM_ERROR: a Galera node outside the primary component
  3100: 'deadlock', // ER_RUN_HOOK_ERROR: group replication refused the transaction
  3101: 'deadlock', // ER_TRANSACTION_ROLLBACK_DURING_COMMIT

  1040: 'too_busy', // ER_CON_COUNT_ERROR
  1203: 'too_busy', // ER_TOO_MANY_USER_CONNECTIONS
  1226: 'too_busy', // ER_USER_LIMIT_REACHED
  1053: 'connection_lost', // ER_SERVER_SHUTDOWN
  1317: 'timed_out', // ER_QUERY_INTERRUPTED: KILL QUERY
  1927: 'connection_lost', // MariaDB ER_CONNECTION_KILLED
  3032: 'connection_lost', // ER_SERVER_OFFLINE_MODE: a member that its group has expelled
  3169: 'connection_lost', // ER_SESSION_WAS_KILLED
  1969: 'too_slow', // MariaDB ER_STATEMENT_TIMEOUT
  3024: 'too_slow', // ER_QUERY_TIMEOUT
  4031: 'connection_lost', // ER_CLIENT_INTERACTION_TIMEOUT
  1158: 'connection_lost', // ER_NET_READ_ERROR
  1159: 'connection_lost', // ER_NET_READ_INTERRUPTED
  1160: 'connection_lost', // ER_NET_ERROR_ON_WRITE
  1161: 'connection_lost', // ER_NET_WRITE_INTERRUPTED

  1048: 'bad_value', // ER_BAD_NULL_ERROR
  1264: 'bad_value', // ER_WARN_DATA_OUT_OF_RANGE
  1265: 'bad_value', // WARN_DATA_TRUNCATED
  1292: 'bad_value', // ER_TRUNCATED_WRONG_VALUE
  1366: 'bad_value', // ER_TRUNCATED_WRONG_VALUE_FOR_FIELD
  1406: 'bad_value', // ER_DATA_TOO_LONG
  1452: 'bad_value', // ER_NO_REFERENCED_ROW_2
  1644: 'bad_value', // ER_SIGNAL_EXCEPTION: a trigger of the operator refused the row
  1690: 'bad_value', // ER_DATA_OUT_OF_RANGE
  3819: 'bad_value', // ER_CHECK_CONSTRAINT_VIOLATED
  4025: 'bad_value', // MariaDB ER_CONSTRAINT_FAILED

  1044: 'denied', // ER_DBACCESS_DENIED_ERROR
  1045: 'denied', // ER_ACCESS_DENIED_ERROR
  1142: 'denied', // ER_TABLEACCESS_DENIED_ERROR
  1227: 'denied', // ER_SPECIFIC_ACCESS_DENIED_ERROR
  1049: 'schema', // ER_BAD_DB_ERROR
  1054: 'schema', // ER_BAD_FIELD_ERROR
  1146: 'schema', // ER_NO_SUCH_TABLE
  1364: 'schema', // ER_NO_DEFAULT_FOR_FIELD: a column that this version of the program does not know
};

/** Codes of the driver and of the socket, for errors without a number of the server. */
const CLIENT_ERRORS: Readonly<Record<string, MysqlErrorKind>> = {
  PROTOCOL_CONNECTION_LOST: 'connection_lost',
  PROTOCOL_SEQUENCE_TIMEOUT: 'timed_out', // our own time limit for a statement
  POOL_WAIT_TIMEOUT: 'too_busy', // ours: no connection became free in time
  ECONNREFUSED: 'connection_lost',
  ECONNRESET: 'connection_lost',
  EPIPE: 'connection_lost',
  ETIMEDOUT: 'connection_lost',
  EHOSTUNREACH: 'connection_lost',
  ENETUNREACH: 'connection_lost',
  ENOTFOUND: 'connection_lost',
  EAI_AGAIN: 'connection_lost',
};

/** The failure of a statement. `kind` is for the adapters in this folder. A use case sees only an OperationalError. */
export class MysqlError extends OperationalError {
  readonly kind: MysqlErrorKind;
  /** For `duplicate`, the name of the unique key, without its table. Otherwise null. */
  readonly key: string | null;
  /** False if the connection must be closed, because it is gone or its state is unknown. */
  readonly connectionUsable: boolean;

  constructor(kind: MysqlErrorKind, message: string, key: string | null, cause: unknown, serverMessage?: string) {
    super('mysql', message, { retryable: KINDS[kind].retryable, cause, serverMessage });
    this.name = 'MysqlError';
    this.kind = kind;
    this.key = key;
    this.connectionUsable = KINDS[kind].connectionUsable;
  }
}

/** Keeps the message of a listed error without quoted values, otherwise only the name: no user id gets into a log. */
export function toMysqlError(cause: unknown): MysqlError {
  if (cause instanceof MysqlError) return cause;
  const raw = (cause ?? {}) as { errno?: unknown; code?: unknown; fatal?: unknown; sqlMessage?: unknown };
  const errno = typeof raw.errno === 'number' ? raw.errno : undefined;
  const code = typeof raw.code === 'string' ? raw.code : undefined;
  const known = errno === undefined ? undefined : SERVER_ERRORS[errno];
  const kind = known ?? CLIENT_ERRORS[code ?? ''] ?? (raw.fatal === true ? 'connection_lost' : 'other');
  const key = kind === 'duplicate' ? duplicateKey(String(raw.sqlMessage)) : null;
  let text = String((cause as Error | null)?.message ?? cause);
  if (key !== null) text = `key ${key}`;
  else if (raw.sqlMessage !== undefined) {
    text = nameOf(errno, code);
    if (known !== undefined) text += `: ${withoutValues(String(raw.sqlMessage))}`;
  }
  const serverMessage = raw.sqlMessage === undefined ? undefined : `${nameOf(errno, code)}: ${String(raw.sqlMessage)}`;
  return new MysqlError(kind, `mysql: ${kind}: ${text}`, key, cause, serverMessage);
}

/** The driver takes names from MySQL's list. From 4000 on, MariaDB has its own list, so the number says more. */
const nameOf = (errno: number | undefined, code: string | undefined): string =>
  code === undefined || (errno ?? 0) >= 4000 ? `errno ${errno}` : code;

/** Keeps the names of columns and tables. The server does not escape quotes inside other quoted texts. */
const withoutValues = (message: string): string =>
  message
    .replace(/'.*'(?= for column )/s, "'…'")
    .replace(/(\b(?:column|table|database) )?'.*?'(?=\s|$)/gis, (quoted, before) => (before ? quoted : "'…'"));

/** `… for key 'orders.PRIMARY'` (MySQL 8) or `… 'PRIMARY'` (MariaDB). The value before it may contain quotes. */
function duplicateKey(message: string): string {
  const name = /for key '([^']*)'$/.exec(message)?.[1] ?? '';
  return name.slice(name.lastIndexOf('.') + 1);
}

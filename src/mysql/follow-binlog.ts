import { randomInt } from 'node:crypto';
import ZongJi from '@vlasky/zongji';
import { createPool, type RowDataPacket } from 'mysql2';
import { connectionOptions, type MysqlServer } from './server.js';

/** Tables whose changes are read. Changes of other tables only move the position. */
const WATCHED_TABLES = [
  ...(['orders', 'orders_archive', 'payments', 'order_refunds'] as const),
  ...(['outbox', 'sales', 'witness_findings'] as const),
];
export type WatchedTable = (typeof WATCHED_TABLES)[number];

/** A row as the binary log has it: a number above 2^53 is a text, and so is a time. */
export type Row = Readonly<Record<string, unknown>>;

export interface RowChange {
  readonly table: WatchedTable;
  /** Null: the row was inserted. */
  readonly before: Row | null;
  /** Null: the row was deleted. */
  readonly after: Row | null;
}

/** A committed transaction of the binary log. */
export interface Committed {
  /** Names the transaction: its GTID, or its end as `file/offset@server`. */
  readonly place: string;
  /** When it ended, on the clock of MySQL, Unix ms in whole seconds. */
  readonly atMs: number;
  readonly changes: readonly RowChange[];
  /** Why `changes` is incomplete, or null. */
  readonly unreadable: string | null;
}

export interface BinlogStream {
  /** The position after the last complete transaction, where a later stream continues. Null: not connected yet. */
  position(): string | null;
  /** The time in the newest event, of any table, Unix ms. Null: there was none. */
  newestMs(): number | null;
  /** Why the stream ended, or null. */
  failure(): Error | null;
  pause(): void;
  resume(): void;
  stop(): void;
}

/** Rows of one transaction that are kept in memory. Programs write some thousand at most. */
const ROWS_MAX = 50_000;
/** Their size in the log. */
const BYTES_MAX = 64 * 1024 ** 2;
/** The position before the oldest event that the log has. */
export const OLDEST = 'oldest';

/** Errors that say that the events after a position are gone, never existed, or cannot be read. */
const LOST = new Set([1236, 1945, 1955]);
class OtherServer extends Error {}

/** Whether a position is lost, and not only the connection. */
export const isLost = (error: Error): boolean =>
  error instanceof OtherServer || LOST.has((error as { errno?: number }).errno ?? 0);

/** MariaDB has no UUID. It needs none, since it always has GTIDs. */
const SERVER = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_id', 'server_uuid')";

/** Statements that change rows without writing rows to the log: DDL, and changes in the format STATEMENT. */
const ON_TABLES = new RegExp(
  `^(?:\\s|/\\*.*?\\*/)*(truncate|drop\\s+table|insert|update|delete|replace|load)\\b[^;]*?[\\s\`.,](${WATCHED_TABLES.join('|')})\\b`,
  'is',
);

/**
 * Follows the binary log as a replica does. Each call of `onCommit` is one transaction that changed a watched table.
 * @param after a position of an earlier stream, or OLDEST. Null: starts with the next transaction
 */
export function followBinlog(
  server: MysqlServer,
  after: string | null,
  onCommit: (transaction: Committed) => void,
): BinlogStream {
  const options = connectionOptions(server);
  const database = options.database ?? '';
  // for queries besides the stream. A pool replaces a connection that the server closed while it was idle
  const control = createPool({ ...options, timezone: 'Z', dateStrings: true, connectionLimit: 1 });
  const stream = new ZongJi(control);
  let failure: Error | null = null;
  /** Null: the stream is not connected yet. */
  let serverName: string | null = null;
  const start = startAt(after);
  let hasGtids = start.options.gtidSet !== undefined;
  let newestMs: number | null = null;
  /** The transaction that is under way. */
  let gtid: string | undefined;
  let changes: RowChange[] = [];
  let bytes = 0;
  let unreadable: string | null = null;
  let isPaused = false;

  const inFile = (): string => `${stream.options.filename ?? ''}/${stream.options.position ?? 4}@${serverName}`;
  const clear = (): void => void ([changes, bytes, unreadable] = [[], 0, null]);
  const commit = (atMs: number): void => {
    const transaction = { place: gtid ?? inFile(), atMs, changes, unreadable };
    clear();
    if (transaction.changes.length > 0 || transaction.unreadable !== null) onCommit(transaction);
  };
  const addRows = (name: string, { tableId, tableMap, rows, size }: RowsOf): void => {
    const table = WATCHED_TABLES.find((watched) => watched === tableMap[tableId]?.tableName);
    if (table === undefined) return;
    bytes += size;
    if (changes.length + rows.length > ROWS_MAX || bytes > BYTES_MAX) {
      unreadable = `more than ${ROWS_MAX} rows or ${BYTES_MAX} bytes`;
      changes = [];
    }
    if (unreadable !== null) return;
    for (const row of rows) {
      if (name === 'UpdateRows') changes.push({ table, before: row.before as Row, after: row.after as Row });
      else
        changes.push({ table, before: name === 'DeleteRows' ? row : null, after: name === 'WriteRows' ? row : null });
    }
  };
  const end = (error: Error): void => {
    failure ??= error;
    stream.stop();
  };
  /** Ends the stream if the connection failed. An event that cannot be read makes only its transaction unreadable. */
  const failed = (error: Error): void => {
    const { fatal, sqlState } = error as { readonly fatal?: boolean; readonly sqlState?: string };
    if (serverName === null || fatal === true || sqlState !== undefined) return end(error);
    unreadable ??= error.message;
    if (!isPaused) stream.connection?.resume(); // the library stays paused if it finds no columns of a table
  };

  stream.on('error', failed);
  stream.once('stopped', () => control.end(() => undefined));
  stream.on('ready', () => {
    // the connection of the stream answers before it sends events
    stream.connection?.query<RowDataPacket[]>(SERVER, (error, rows) => {
      if (error !== null) return end(error);
      const named = Object.fromEntries(rows.map((row) => [String(row.Variable_name), String(row.Value)]));
      const connected = named.server_uuid ?? named.server_id ?? '';
      const { server: known = connected } = start;
      if (known === connected) serverName = connected;
      else end(new OtherServer(`the position is of server ${known || 'unknown'}, and this is server ${connected}`));
    });
  });
  stream.on('binlog', (event) => {
    if (failure !== null) return;
    if (event.timestamp > 0) newestMs = event.timestamp;
    hasGtids ||= event.gtid !== undefined;
    try {
      const name: string = event.getTypeName();
      const { query = '', schema } = event as { readonly query?: string; readonly schema?: string };
      if (BEGINS.has(name) || query === 'BEGIN') {
        if (unreadable !== null) commit(event.timestamp); // its end could not be read
        clear();
      }
      gtid = event.gtid;
      switch (name) {
        case 'WriteRows':
        case 'UpdateRows':
        case 'DeleteRows':
          return addRows(name, event as unknown as RowsOf);
        case 'PartialUpdateRows':
          unreadable = 'binlog_row_value_options is PARTIAL_JSON';
          return;
        case 'TransactionPayload': // a whole transaction
          unreadable = 'binlog_transaction_compression is ON';
          return commit(event.timestamp);
        case 'Xid':
          return commit(event.timestamp);
        case 'Query': {
          if (query === 'COMMIT') return commit(event.timestamp);
          const [, verb = '', table = ''] = ON_TABLES.exec(query) ?? [];
          if (table === '' || (schema !== database && !query.includes(database))) return;
          unreadable = `${verb} ${table}`.toLowerCase(); // the whole statement may name a buyer
          // a statement that commits by itself has no event of its end
          if (/^(truncate|drop)/i.test(verb)) commit(event.timestamp);
          return;
        }
        default:
          return;
      }
    } catch (error) {
      failed(error as Error);
    }
  });
  stream.start({
    // unlike any replica: the server ends the older of two connections with the same number
    serverId: randomInt(2 ** 31, 2 ** 32 - 1),
    includeEvents: [
      ...['gtid', 'anonymousgtid', 'mariadbgtid', 'query', 'xid'],
      ...['tablemap', 'writerows', 'updaterows', 'deleterows', 'partialupdaterows', 'transactionpayload'],
    ],
    includeSchema: { [database]: [...WATCHED_TABLES] },
    ...start.options,
  });
  return {
    position() {
      if (serverName === null || stream.options.filename === undefined) return null;
      return (hasGtids ? stream.gtidSet : undefined) || inFile();
    },
    newestMs: () => newestMs,
    failure: () => failure,
    pause(): void {
      isPaused = true;
      stream.connection?.pause();
    },
    resume(): void {
      if (!isPaused) return; // the library itself may have paused, to read the columns of a table
      isPaused = false;
      stream.connection?.resume();
    },
    stop: () => stream.stop(),
  };
}

interface RowsOf {
  readonly tableId: number;
  readonly tableMap: Readonly<Record<number, { readonly tableName: string } | undefined>>;
  readonly rows: readonly Row[];
  readonly size: number;
}

const BEGINS = new Set(['Gtid', 'AnonymousGtid', 'MariadbGtid']);

/** A position is `file/offset@server`, or GTIDs, which have no slash and mean the same on every server. */
const FILE_AND_OFFSET = /^([^/]+)\/(\d+)(?:@(.*))?$/;

interface From {
  readonly options: { startAtEnd?: true; gtidSet?: string; filename?: string; position?: number };
  /** The server of the position. Absent: any server. */
  readonly server?: string;
}

function startAt(after: string | null): From {
  if (after === OLDEST) return { options: {} };
  if (after === null) return { options: { startAtEnd: true } };
  const [, filename, position, server] = FILE_AND_OFFSET.exec(after) ?? [];
  return filename === undefined
    ? { options: { gtidSet: after } }
    : { options: { filename, position: Number(position) }, ...(server === undefined ? {} : { server }) };
}

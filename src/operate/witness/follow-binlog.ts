import { randomInt } from 'node:crypto';
import ZongJi from '@vlasky/zongji';
import { connectionOptions, type MysqlServer } from '../../mysql/server.js';
import { WATCHED_TABLES, type Row, type RowChange } from './judge.js';

/** A transaction that the binary log says is committed. */
export interface Committed {
  /** Names the transaction: its GTID, or the file and the place of its end. */
  readonly place: string;
  /** When it ended, on the clock of MySQL, Unix ms in whole seconds. */
  readonly atMs: number;
  readonly changes: readonly RowChange[];
  /** Why `changes` are not complete, or null. */
  readonly unreadable: string | null;
}

export interface BinlogStream {
  /** Where a later stream continues: behind the last transaction that ended. Null: the stream is not connected yet. */
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
/** Errors that say that the log has no longer what follows a position, or never had it. */
const LOST = new Set([1236, 1945, 1955]);

/** Whether a position is lost, and not only the connection. */
export const isLost = (error: Error): boolean => LOST.has((error as { errno?: number }).errno ?? 0);

/** Statements that change rows and write none to the log: DDL, and changes in the format STATEMENT. */
const ON_TABLES = new RegExp(
  `^(?:\\s|/\\*.*?\\*/)*(truncate|drop\\s+table|insert|update|delete|replace|load)\\b[^;]*?[\\s\`.,](${WATCHED_TABLES.join('|')})\\b`,
  'is',
);

/**
 * Follows the binary log as a replica does. Each call of `onCommit` is one transaction that changed a watched table.
 * @param after a position of an earlier stream. Null: starts with the next transaction
 */
export function followBinlog(
  server: MysqlServer,
  after: string | null,
  onCommit: (transaction: Committed) => void,
): BinlogStream {
  const options = connectionOptions(server);
  const database = options.database ?? '';
  const stream = new ZongJi({ ...options, timezone: 'Z', dateStrings: true });
  let failure: Error | null = null;
  let isReady = false;
  let hasGtids = after !== null && !FILE_AND_OFFSET.test(after);
  let newestMs: number | null = null;
  let changes: RowChange[] = [];
  let bytes = 0;
  let unreadable: string | null = null;
  let isPaused = false;

  const inFile = (): string => `${stream.options.filename ?? ''}/${stream.options.position ?? 4}`;
  const clear = (): void => void ([changes, bytes, unreadable] = [[], 0, null]);
  const commit = (gtid: string | undefined, atMs: number): void => {
    if (changes.length > 0 || unreadable !== null) onCommit({ place: gtid ?? inFile(), atMs, changes, unreadable });
    clear();
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

  stream.on('error', end);
  stream.on('ready', () => (isReady = true));
  stream.on('binlog', (event) => {
    if (failure !== null) return;
    if (event.timestamp > 0) newestMs = event.timestamp;
    hasGtids ||= event.gtid !== undefined;
    try {
      const name: string = event.getTypeName();
      switch (name) {
        case 'Gtid':
        case 'AnonymousGtid':
        case 'MariadbGtid':
          return clear();
        case 'WriteRows':
        case 'UpdateRows':
        case 'DeleteRows':
          return addRows(name, event as unknown as RowsOf);
        case 'Xid':
          return commit(event.gtid, event.timestamp);
        case 'Query': {
          const { query, schema } = event as unknown as { readonly query: string; readonly schema: string };
          if (query === 'BEGIN') return clear();
          if (query === 'COMMIT') return commit(event.gtid, event.timestamp);
          const [, verb = '', table = ''] = ON_TABLES.exec(query) ?? [];
          if (table === '' || (schema !== database && !query.includes(database))) return;
          unreadable = `${verb} ${table}`.toLowerCase(); // the whole statement may name a buyer
          // a statement that commits by itself has no event of its end
          if (/^(truncate|drop)/i.test(verb)) commit(event.gtid, event.timestamp);
          return;
        }
        default:
          return;
      }
    } catch (error) {
      end(error as Error); // a transaction that cannot be read must not be skipped
    }
  });
  stream.start({
    // unlike any replica: the server ends the older of two connections with the same number
    serverId: randomInt(2 ** 31, 2 ** 32 - 1),
    includeEvents: [
      ...['gtid', 'anonymousgtid', 'mariadbgtid', 'query', 'xid'],
      ...['tablemap', 'writerows', 'updaterows', 'deleterows'],
    ],
    includeSchema: { [database]: [...WATCHED_TABLES] },
    ...startAt(after),
  });
  return {
    position: () => (isReady ? (hasGtids ? stream.gtidSet : undefined) || inFile() : null),
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

/** A position is the name of a file and an offset in it, or GTIDs, which have no slash. */
const FILE_AND_OFFSET = /^([^/]+)\/(\d+)$/;

function startAt(after: string | null) {
  if (after === null) return { startAtEnd: true };
  const [, filename, position] = FILE_AND_OFFSET.exec(after) ?? [];
  return filename === undefined ? { gtidSet: after } : { filename, position: Number(position) };
}

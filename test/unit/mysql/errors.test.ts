import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { toMysqlError } from '../../../src/mysql/errors.js';

const serverError = (errno: number, code: string, sqlMessage: string): Error =>
  Object.assign(new Error(sqlMessage), { errno, code, sqlMessage });

describe('mysql errors', () => {
  const cases: [number, string, string, { kind: string; retryable: boolean; connectionUsable: boolean }][] = [
    [1213, 'ER_LOCK_DEADLOCK', 'D3', { kind: 'deadlock', retryable: true, connectionUsable: true }],
    [1205, 'ER_LOCK_WAIT_TIMEOUT', 'D3', { kind: 'lock_wait', retryable: true, connectionUsable: true }],
    [1021, 'ER_DISK_FULL', 'D1', { kind: 'disk_full', retryable: true, connectionUsable: true }],
    [1114, 'ER_RECORD_FILE_FULL', 'D1', { kind: 'disk_full', retryable: true, connectionUsable: true }],
    [1290, 'ER_OPTION_PREVENTS_STATEMENT', 'D1', { kind: 'read_only', retryable: true, connectionUsable: false }],
    [1836, 'ER_READ_ONLY_MODE', 'D1', { kind: 'read_only', retryable: true, connectionUsable: false }],
    [1040, 'ER_CON_COUNT_ERROR', 'D2', { kind: 'too_busy', retryable: true, connectionUsable: false }],
    [1264, 'ER_WARN_DATA_OUT_OF_RANGE', 'D7', { kind: 'bad_value', retryable: false, connectionUsable: true }],
    [1406, 'ER_DATA_TOO_LONG', 'D7', { kind: 'bad_value', retryable: false, connectionUsable: true }],
    [1644, 'ER_SIGNAL_EXCEPTION', 'G10', { kind: 'bad_value', retryable: false, connectionUsable: true }],
    [1146, 'ER_NO_SUCH_TABLE', 'D1', { kind: 'schema', retryable: true, connectionUsable: true }],
    [3032, 'ER_SERVER_OFFLINE_MODE', 'D1', { kind: 'connection_lost', retryable: true, connectionUsable: false }],
    [3169, 'ER_SESSION_WAS_KILLED', 'D4', { kind: 'connection_lost', retryable: true, connectionUsable: false }],
    [1364, 'ER_NO_DEFAULT_FOR_FIELD', 'D1', { kind: 'schema', retryable: true, connectionUsable: true }],
    [1064, 'ER_PARSE_ERROR', 'bug', { kind: 'other', retryable: false, connectionUsable: false }],
  ];
  for (const [errno, code, row, expected] of cases) {
    it(`maps ${row} ${errno} to ${expected.kind}`, () => {
      const error = toMysqlError(serverError(errno, code, `about user 'ann'`));
      expect(error)
        .to.be.instanceOf(OperationalError)
        .and.include({ dependency: 'mysql', key: null, ...expected });
      expect(error.message).to.include(code).and.not.include('ann');
    });
  }

  it('keeps the names of column, table and constraint, but no value', () => {
    const messageOf = (errno: number, code: string, message: string): string =>
      toMysqlError(serverError(errno, code, message)).message;
    // The driver reports MariaDB's 4025 under the name that this number has in MySQL.
    expect(
      messageOf(4025, 'ER_INNODB_AUTOEXTEND_SIZE_OUT_OF_RANGE', 'CONSTRAINT `window` failed for `sales`'),
    ).to.equal('mysql: bad_value: errno 4025: CONSTRAINT `window` failed for `sales`');
    expect(messageOf(1406, 'ER_DATA_TOO_LONG', "Data too long for column 'title' at row 1")).to.equal(
      "mysql: bad_value: ER_DATA_TOO_LONG: Data too long for column 'title' at row 1",
    );
    expect(
      messageOf(1292, 'ER_TRUNCATED_WRONG_VALUE', "Incorrect datetime value: 'ann' for column 'at' at row 1"),
    ).to.equal("mysql: bad_value: ER_TRUNCATED_WRONG_VALUE: Incorrect datetime value: '…' for column 'at' at row 1");
    expect(messageOf(1064, 'ER_PARSE_ERROR', "You have an error near 'VALUES ('ann')' at line 1")).to.equal(
      'mysql: other: ER_PARSE_ERROR',
    );
  });

  it('finds the key in error 1062 of MySQL 8 and MariaDB, whatever the value [D7]', () => {
    const keyOf = (message: string): unknown => toMysqlError(serverError(1062, 'ER_DUP_ENTRY', message)).key;
    expect(keyOf("Duplicate entry '12' for key 'PRIMARY'")).to.equal('PRIMARY');
    expect(keyOf("Duplicate entry '12' for key 'orders.PRIMARY'")).to.equal('PRIMARY');
    expect(keyOf("Duplicate entry 'x' for key 'PRIMARY'-7-k' for key 'orders.request'")).to.equal('request');
  });

  it('reports errors of the socket and the driver as a lost connection or a time-out [D4]', () => {
    const kindOf = (fields: object): unknown => toMysqlError(Object.assign(new Error('no server'), fields)).kind;
    expect(kindOf({ code: 'ECONNREFUSED' })).to.equal('connection_lost');
    expect(kindOf({ code: 'PROTOCOL_CONNECTION_LOST', fatal: true })).to.equal('connection_lost');
    expect(kindOf({ fatal: true })).to.equal('connection_lost');
    expect(kindOf({ code: 'PROTOCOL_SEQUENCE_TIMEOUT' })).to.equal('timed_out');
    expect(kindOf({})).to.equal('other');
    expect(toMysqlError(null).kind).to.equal('other');
  });
});

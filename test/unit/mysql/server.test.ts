import { expect } from 'chai';
import { addressOf, connectFault, connectionOptions } from '../../../src/mysql/server.js';

const URL = 'mysql://shop:hush%20hush@db.example:3307/orders';
const refusedWith = (errno: number, code: string, sqlMessage: string): Error =>
  Object.assign(new Error(sqlMessage), { errno, code, sqlMessage, fatal: true });

describe('mysql: connection options', () => {
  it('follow the url, with the password from its own setting', () => {
    const login = { user: 'shop', database: 'orders' };
    const plain = { host: 'db.example', port: 3307, ...login };
    expect(connectionOptions({ url: URL })).to.deep.equal({ ...plain, password: 'hush hush' });
    expect(connectionOptions({ url: URL, password: () => 'other' })).to.deep.equal({ ...plain, password: 'other' });
    expect(connectionOptions({ url: URL, password: () => '' })).to.include({ password: 'hush hush' });
    expect(connectionOptions({ url: 'mysql://u@h/d' })).to.include({ port: 3306, password: '' });
  });

  it('use the host of the url, whatever name its certificate must have', () => {
    const url = 'mysql://u:p@10.0.0.7/x';
    expect(addressOf({ url })).to.deep.equal({ host: '10.0.0.7', port: 3306 });
    expect(addressOf({ url: 'mysql://u:p@[::1]:3307/x' })).to.deep.equal({ host: '::1', port: 3307 });
    const named = connectionOptions({ url, tls: 'on', tlsServerName: 'db.example' });
    expect([named.host, addressOf({ url }).host]).to.deep.equal(['db.example', '10.0.0.7']);
  });

  it('give the driver the certificate name, and always verify it, if TLS is on', () => {
    const options = (serverName: string) => connectionOptions({ url: URL, tls: 'on', tlsServerName: serverName });
    expect([options('').host, options('mysql.internal').host]).to.deep.equal(['db.example', 'mysql.internal']);
    expect(options('').ssl).to.include({ verifyIdentity: true, rejectUnauthorized: true });
    expect(connectionOptions({ url: URL, tls: 'off' })).not.to.have.any.keys('ssl', 'stream');
  });

  describe('a MySQL connection that fails', () => {
    const cases: [unknown, string][] = [
      [
        refusedWith(1045, 'ER_ACCESS_DENIED_ERROR', "Access denied for user 'shop'@'10.0.0.1' (using password: YES)"),
        "refuses the user shop: correct user and password in MYSQL_URL (mysql: denied: ER_ACCESS_DENIED_ERROR: Access denied for user '…' (using password: YES))",
      ],
      [
        refusedWith(1044, 'ER_DBACCESS_DENIED_ERROR', "Access denied for user 'shop'@'%' to database 'orders'"),
        'gives the user shop no rights on the database orders: grant them, or correct MYSQL_URL',
      ],
      [
        refusedWith(1049, 'ER_BAD_DB_ERROR', "Unknown database 'orders'"),
        'has no database orders: create it, or correct MYSQL_URL',
      ],
      [
        refusedWith(3159, 'ER_SECURE_TRANSPORT_REQUIRED', 'Connections using insecure transport are prohibited'),
        'refuses connections without TLS: set MYSQL_TLS to on',
      ],
      [
        Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:3307'), { code: 'ECONNREFUSED' }),
        'cannot be reached (connect ECONNREFUSED 10.0.0.1:3307): check that it is running, and check MYSQL_URL',
      ],
      [
        Object.assign(new Error('Server does not support secure connection'), { code: 'HANDSHAKE_NO_SSL_SUPPORT' }),
        'does not use TLS: switch it on there, or set MYSQL_TLS to off (Server does not support secure connection)',
      ],
      [
        refusedWith(1040, 'ER_CON_COUNT_ERROR', 'Too many connections'),
        'did not accept a connection (mysql: too_busy: ER_CON_COUNT_ERROR: Too many connections)',
      ],
    ];
    for (const [cause, sentence] of cases) {
      it(sentence, () => {
        const error = connectFault(cause, { url: URL });
        expect(error.message).to.equal(`MySQL at db.example:3307 ${sentence}`);
        expect(error.message).not.to.include('hush');
      });
    }

    it('keeps the error code that a caller needs', () => {
      const denied = connectFault(cases[0]?.[0], { url: URL });
      expect(denied).to.include({ kind: 'denied', retryable: true, connectionUsable: false });
      const gone = connectFault(cases[4]?.[0], { url: URL });
      expect(gone).to.include({ kind: 'connection_lost', retryable: true });
    });
  });
});

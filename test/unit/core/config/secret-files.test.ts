import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import sinon from 'sinon';
import { makeAuthority, makeCertificate, type Certified } from '../../../../deploy/local/stack/certificates.js';
import { ConfigError, loadConfig, withSettings, type Environment } from '../../../../src/core/config/load.js';
import { allKeys, type SectionName } from '../../../../src/core/config/schema.js';
import { useTempFolder } from '../../stack/temp-folder.js';

const MYSQL_URL = 'mysql://seckill@127.0.0.1:3306/seckill';
const REDIS_URL = 'rediss://seckill@127.0.0.1:6379';
const DAY_MS = 86_400_000;

function problemOf(sections: readonly SectionName[], env: Environment): string {
  try {
    loadConfig(sections, env);
    return '';
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigError);
    return (error as ConfigError).problems.join('; ');
  }
}

describe('config: secrets and certificates from files', () => {
  const folder = useTempFolder();
  const file = (name: string, text: string | Buffer): string => {
    const path = join(folder(), name);
    writeFileSync(path, text);
    return path;
  };

  it('accepts a file for every secret', () => {
    const keys = allKeys();
    const secrets = keys.filter(({ secret }) => secret);
    expect(secrets.filter(({ fromFile }) => !fromFile).map(({ env }) => env)).to.deep.equal([]);
    const names = new Set(keys.map(({ env }) => env));
    const taken = keys.filter(({ env, fromFile }) => fromFile && names.has(`${env}_FILE`));
    expect(
      taken.map(({ env }) => env),
      'the name of its file is another setting',
    ).to.deep.equal([]);
    expect(secrets.map(({ env }) => env)).to.include.members([
      'MYSQL_URL',
      'MYSQL_PASSWORD',
      'JWT_SECRET',
      'MESSAGE_KEYS',
    ]);
  });

  it('removes only the final newline of a file', () => {
    const read = (text: string): string =>
      loadConfig(['mysql'], { MYSQL_URL, MYSQL_PASSWORD_FILE: file('password', text) }).mysql.password();
    expect(['hush\n', 'hush\r\n', 'hush', ' hu sh \n', 'hush\n\n'].map(read)).to.deep.equal([
      'hush',
      'hush',
      'hush',
      ' hu sh ',
      'hush\n',
    ]);
    const { url } = loadConfig(['mysql'], { MYSQL_URL_FILE: file('url', `${MYSQL_URL}\n`) }).mysql;
    expect(url).to.equal(MYSQL_URL);
  });

  it('names a file that cannot be used, and the reason', () => {
    const wrong = (path: string): string => problemOf(['mysql'], { MYSQL_URL, MYSQL_PASSWORD_FILE: path });
    expect(wrong('/nowhere/password')).to.equal(
      'MYSQL_PASSWORD_FILE names /nowhere/password, which cannot be read (ENOENT)',
    );
    mkdirSync(join(folder(), 'a-folder'));
    expect(wrong(join(folder(), 'a-folder'))).to.match(
      /^MYSQL_PASSWORD_FILE names \S+, which cannot be read \(EISDIR\)$/,
    );
    expect(wrong(file('latin1', Buffer.from('caf\u00e9', 'latin1')))).to.match(/, which is not UTF-8 text$/);
    expect(wrong(file('empty', '\n'))).to.match(/^MYSQL_PASSWORD_FILE names \S+, which is empty$/);
    expect(wrong(file('large', 'x'.repeat(1024 * 1024 + 1)))).to.match(/which is larger than 1048576 bytes$/);
    const long = problemOf(['auth'], { JWT_SECRET_FILE: file('short', 'too short\n') });
    expect(long)
      .to.match(/^JWT_SECRET/)
      .and.not.include('too short');
  });

  it('refuses a value together with its file, and a second password', () => {
    expect(problemOf(['mysql'], { MYSQL_URL, MYSQL_PASSWORD: 'a', MYSQL_PASSWORD_FILE: file('b', 'b') })).to.equal(
      'MYSQL_PASSWORD and MYSQL_PASSWORD_FILE must not both be set; keep only one of them',
    );
    const twice = { MYSQL_URL: 'mysql://seckill:one@db/seckill', MYSQL_PASSWORD: 'two' };
    expect(problemOf(['mysql'], twice)).to.equal(
      'MYSQL_URL must have no password if MYSQL_PASSWORD is set; keep only one of them',
    );
    expect(problemOf(['redis'], { REDIS_URL: 'redis+cluster://:one@a:1,b:2', REDIS_PASSWORD: 'two' })).to.include(
      'REDIS_URL must have no password',
    );
  });

  it('prefers the settings of an app to its environment, and to files in its environment', () => {
    const around = { MYSQL_PASSWORD_FILE: file('around', 'around') };
    const of = (settings: Record<string, string>, env: Environment): string =>
      loadConfig(['mysql'], withSettings({ MYSQL_URL, ...settings }, env)).mysql.password();
    expect(of({}, around)).to.equal('around');
    expect(of({ MYSQL_PASSWORD: 'set' }, around)).to.equal('set');
    expect(of({ MYSQL_PASSWORD_FILE: file('own', 'own') }, { MYSQL_PASSWORD: 'around' })).to.equal('own');
    const kept = withSettings({ ACCESS_LOG_FILE: '/a/log' }, { ACCESS_LOG: 'all' });
    expect(kept, 'no secret and no file with a secret').to.include({ ACCESS_LOG: 'all', ACCESS_LOG_FILE: '/a/log' });
  });

  it('reads a password again when its file changes', () => {
    const clock = sinon.useFakeTimers({ toFake: ['performance'] });
    try {
      const path = file('password', 'old\n');
      const { password } = loadConfig(['mysql'], { MYSQL_URL, MYSQL_PASSWORD_FILE: path }).mysql;
      const { secret } = loadConfig(['brokerAccess'], {
        ROCKETMQ_ACCESS_KEY: 'k',
        ROCKETMQ_ACCESS_SECRET: 'kept',
      }).brokerAccess;
      writeFileSync(path, 'new\n');
      expect(password()).to.equal('old');
      clock.tick(5_000);
      expect([password(), secret()]).to.deep.equal(['new', 'kept']);
      writeFileSync(path, '');
      clock.tick(5_000);
      expect(password(), 'an empty file is being written').to.equal('new');
    } finally {
      clock.restore();
    }
  });

  describe('certificates', () => {
    let authority: Certified;
    let pair: Certified;
    let other: Certified;
    before(async () => {
      authority = await makeAuthority('ours');
      [pair, other] = await Promise.all([
        makeCertificate({ commonName: 'us' }, authority),
        makeCertificate({ commonName: 'others' }, authority),
      ]);
    });

    const mysql = (env: Environment): string => problemOf(['mysql'], { MYSQL_URL, MYSQL_TLS: 'on', ...env });

    it('are read from the environment or from files', () => {
      const { tlsCa, tlsCert, tlsKey, tls } = loadConfig(['mysql'], {
        MYSQL_URL,
        MYSQL_TLS: 'on',
        MYSQL_TLS_CA: authority.cert,
        MYSQL_TLS_CERT_FILE: file('cert.pem', pair.cert),
        MYSQL_TLS_KEY_FILE: file('key.pem', pair.key),
      }).mysql;
      expect([tls, tlsCa(), tlsCert().trim(), tlsKey().trim()]).to.deep.equal([
        'on',
        authority.cert,
        pair.cert.trim(),
        pair.key.trim(),
      ]);
    });

    it('are named if they cannot be used, without showing a key', async () => {
      const expired = await makeCertificate(
        { commonName: 'x', fromMs: Date.now() - 2 * DAY_MS, untilMs: Date.now() - DAY_MS },
        authority,
      );
      expect(mysql({ MYSQL_TLS_CA: 'no certificate' })).to.equal(
        'MYSQL_TLS_CA must contain certificates in PEM, but contains none',
      );
      expect(mysql({ MYSQL_TLS_CA: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' })).to.equal(
        'MYSQL_TLS_CA must contain certificates in PEM, but one of them cannot be read',
      );
      expect(mysql({ MYSQL_TLS_CA_FILE: file('old.pem', expired.cert) })).to.match(
        /^MYSQL_TLS_CA_FILE must contain a certificate that is valid, but it expired on \d{4}-/,
      );
      expect(mysql({ MYSQL_TLS_CA: expired.cert + authority.cert }), 'an old certificate beside it').to.equal('');
      const chain = { MYSQL_TLS_CERT: expired.cert + authority.cert, MYSQL_TLS_KEY: expired.key };
      expect(mysql(chain), 'our own certificate comes first').to.match(
        /^MYSQL_TLS_CERT must contain a certificate that is valid/,
      );
      const noKey = mysql({ MYSQL_TLS_CERT: pair.cert, MYSQL_TLS_KEY: 'hush-hush' });
      expect(noKey).to.equal('MYSQL_TLS_KEY must contain a private key in PEM without a passphrase, but does not');
      expect(mysql({ MYSQL_TLS_CERT: pair.cert, MYSQL_TLS_KEY: other.key })).to.equal(
        'MYSQL_TLS_KEY must be the key of MYSQL_TLS_CERT, but is the key of another certificate',
      );
      expect(mysql({ MYSQL_TLS_CERT: pair.cert })).to.equal(
        'MYSQL_TLS_CERT and MYSQL_TLS_KEY must both be set, or neither',
      );
    });

    it('are refused if TLS is off', () => {
      const ca = authority.cert;
      expect(mysql({ MYSQL_TLS: 'off', MYSQL_TLS_CA: ca })).to.equal(
        'MYSQL_TLS must be on if MYSQL_TLS_CA is set, because nothing is encrypted now',
      );
      expect(problemOf(['redis'], { REDIS_URL: 'redis://h:1', REDIS_TLS_CA: ca })).to.equal(
        'REDIS_URL must begin with rediss if REDIS_TLS_CA is set, because nothing is encrypted now',
      );
      expect(problemOf(['redis'], { REDIS_URL, REDIS_TLS_CA: ca })).to.equal('');
      expect(problemOf(['brokerAccess'], { ROCKETMQ_TLS_SERVER_NAME: 'mq.example' })).to.equal(
        'ROCKETMQ_TLS must be on if ROCKETMQ_TLS_SERVER_NAME is set, because nothing is encrypted now',
      );
      expect(problemOf(['brokerAccess'], { ROCKETMQ_TLS: 'grpc', ROCKETMQ_TLS_CA: ca })).to.equal('');
    });
  });

  it('refuses a session token without its key, and a Sentinel user without a password', () => {
    expect(problemOf(['brokerAccess'], { ROCKETMQ_SESSION_TOKEN: 't' })).to.equal(
      'ROCKETMQ_ACCESS_KEY must be set if ROCKETMQ_SESSION_TOKEN is set',
    );
    expect(problemOf(['redis'], { REDIS_URL, REDIS_SENTINEL_USER: 'u' })).to.equal(
      'REDIS_SENTINEL_PASSWORD must be set if REDIS_SENTINEL_USER is set',
    );
  });
});

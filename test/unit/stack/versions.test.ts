import { expect } from 'chai';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesBelow, sumOf } from '../../../deploy/local/stack/maven.js';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import {
  DEFAULT_VERSIONS,
  OWN_SERVERS,
  ownServer,
  VERSION_SETTINGS,
  VERSIONS,
  versionsIn,
  wantedVersions,
} from '../../../deploy/local/stack/versions.js';
import { useTempFolder } from './temp-folder.js';

describe('the choice of servers', () => {
  it('is an option, else an own server, else a setting, else the default', () => {
    const env = { SECKILL_MYSQL: '8.0', SECKILL_REDIS: 'valkey', SECKILL_REDIS_SERVER: '/own', SECKILL_ROCKETMQ: '' };
    expect(wantedVersions({}, {})).to.deep.equal({});
    expect(wantedVersions({}, env)).to.deep.equal({ mysql: '8.0', redis: 'own' });
    expect(wantedVersions({ redis: '7' }, env)).to.deep.equal({ mysql: '8.0', redis: '7' });
    expect(versionsIn({ SECKILL_MYSQL: '9.7' })).to.deep.equal({ ...DEFAULT_VERSIONS, mysql: '9.7' });
  });

  it('throws the known versions when a version is unknown', () => {
    expect(() => wantedVersions({}, { SECKILL_MYSQL: '5.7' }))
      .to.throw(StackError)
      .with.property('message', 'SECKILL_MYSQL is 5.7; the stack can run mariadb-11.4, 8.0, 9.7.');
  });

  it('throws when the setting of an own server is missing or names no file', () => {
    expect(() => ownServer('mysql', {})).to.throw(StackError, /your own .*; set SECKILL_MYSQLD to its path/);
    expect(() => ownServer('redis', { SECKILL_REDIS_SERVER: '/nowhere' })).to.throw(StackError, /does not exist/);
    expect(ownServer('rocketmq', { SECKILL_ROCKETMQ_LIB: REPO_DIR })).to.equal(REPO_DIR);
  });

  it('is documented with every word and setting', () => {
    const page = readFileSync(join(REPO_DIR, 'docs/servers.md'), 'utf8');
    const words = Object.values(VERSIONS).flat();
    const settings = [...Object.values(VERSION_SETTINGS), ...Object.values(OWN_SERVERS)];
    for (const word of [...words, ...settings]) expect(page, word).to.include(`\`${word}\``);
  });
});

describe('downloaded files', () => {
  const folder = useTempFolder();
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder(), path)), { recursive: true });
    writeFileSync(join(folder(), path), text);
  };

  it('have one sum over names and contents in any order of names', () => {
    put('jars/a.jar', 'one');
    put('jars/deep/b.jar', 'other');
    const files = filesBelow(folder(), 'jars');
    expect(files).to.have.members(['jars/a.jar', 'jars/deep/b.jar']);
    const sum = sumOf(folder(), files);
    expect(sum).to.match(/^[0-9a-f]{64}$/);
    expect(sumOf(folder(), [...files].reverse())).to.equal(sum);
    put('jars/a.jar', 'another');
    expect(sumOf(folder(), files), 'another content').not.to.equal(sum);
  });
});

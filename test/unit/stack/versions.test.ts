import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { writeLauncher } from '../../../deploy/local/stack/debian.js';
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
  it('is an option, then a server of one’s own, then a setting, then the default', () => {
    const env = { SECKILL_MYSQL: '8.0', SECKILL_REDIS: 'valkey', SECKILL_REDIS_SERVER: '/own', SECKILL_ROCKETMQ: '' };
    expect(wantedVersions({}, {})).to.deep.equal({});
    expect(wantedVersions({}, env)).to.deep.equal({ mysql: '8.0', redis: 'own' });
    expect(wantedVersions({ redis: '7' }, env)).to.deep.equal({ mysql: '8.0', redis: '7' });
    expect(versionsIn({ SECKILL_MYSQL: '9.7' })).to.deep.equal({ ...DEFAULT_VERSIONS, mysql: '9.7' });
  });

  it('of a version that there is not names those that there are', () => {
    expect(() => wantedVersions({}, { SECKILL_MYSQL: '5.7' }))
      .to.throw(StackError)
      .with.property('message', 'SECKILL_MYSQL is 5.7; the stack can run mariadb-11.4, 8.0, 9.7.');
  });

  it('of a server of one’s own asks for its setting where that is missing, or names nothing', () => {
    expect(() => ownServer('mysql', {})).to.throw(StackError, /of your own; name it with SECKILL_MYSQLD/);
    expect(() => ownServer('redis', { SECKILL_REDIS_SERVER: '/nowhere' })).to.throw(StackError, /does not exist/);
    expect(ownServer('rocketmq', { SECKILL_ROCKETMQ_LIB: REPO_DIR })).to.equal(REPO_DIR);
  });

  it('is in docs/servers.md, word by word and setting by setting', () => {
    const page = readFileSync(join(REPO_DIR, 'docs/servers.md'), 'utf8');
    const words = Object.values(VERSIONS).flat();
    const settings = [...Object.values(VERSION_SETTINGS), ...Object.values(OWN_SERVERS)];
    for (const word of [...words, ...settings]) expect(page, word).to.include(`\`${word}\``);
  });
});

describe('what came', () => {
  const folder = useTempFolder();
  const put = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder(), path)), { recursive: true });
    writeFileSync(join(folder(), path), text);
  };

  it('has one sum over names and contents, in whatever order files are named', () => {
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

  it('as packages is started with their own libraries, from wherever the folder stands', () => {
    // a loader that prints what it was asked to load
    put('usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2', '');
    put('lib/x86_64-linux-gnu/libc.so.6', '');
    put('usr/lib/x86_64-linux-gnu/libz.so.1.3', '');
    put('usr/lib/x86_64-linux-gnu/gconv/UTF-16.so', '');
    put('usr/sbin/mysqld', '');
    const script = writeLauncher(folder(), 'usr/sbin/mysqld');
    expect(script).to.equal(join(folder(), 'launch/mysqld'));
    const text = readFileSync(script, 'utf8').replace('exec ', 'echo ');
    writeFileSync(script, text);
    const words = execFileSync(script, ['--port', '1'], { encoding: 'utf8' }).trim().split(' ');
    const here = `${folder()}/launch/..`;
    const libraries = words[2]?.split(':');
    expect(libraries).to.have.members([`${here}/usr/lib/x86_64-linux-gnu`, `${here}/lib/x86_64-linux-gnu`]);
    expect([...words.slice(0, 2), ...words.slice(3)]).to.deep.equal([
      `${here}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2`,
      '--library-path',
      '--argv0',
      'mysqld',
      `${here}/usr/sbin/mysqld`,
      '--port',
      '1',
    ]);
  });
});

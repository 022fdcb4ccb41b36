import { expect } from 'chai';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { DEFAULT_PORTS, pickFreePorts } from '../../../deploy/local/stack/ports.js';
import {
  loadPorts,
  loadVersions,
  rememberInstance,
  ensureSecrets,
  readSecrets,
} from '../../../deploy/local/stack/settings.js';
import { tryLock } from '../../../deploy/local/stack/processes.js';
import { openStack } from '../../../deploy/local/stack/stack.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import { DEFAULT_VERSIONS } from '../../../deploy/local/stack/versions.js';
import { useTempFolder } from './temp-folder.js';

describe('lock of an instance', () => {
  const folder = useTempFolder();
  const path = (): string => join(folder(), 'run', 'up.lock');

  it('is taken once, names its owner, and can be given back', () => {
    const first = tryLock(path());
    if (!('release' in first)) throw new Error('the lock was free');
    expect(tryLock(path())).to.deep.equal({ heldBy: process.pid });
    first.release();
    expect(tryLock(path())).to.have.property('release');
    expect(readdirSync(join(folder(), 'run'))).to.deep.equal(['up.lock']);
  });

  it('throws a sentence when its folder cannot be written', () => {
    expect(() => tryLock('/proc/none/up.lock')).to.throw(StackError, /^Cannot write to/);
  });

  it('is free when its owner is dead [L2]', () => {
    tryLock(path());
    const owner = JSON.parse(readFileSync(path(), 'utf8')) as object;
    writeFileSync(path(), JSON.stringify({ ...owner, startTicks: '1' }));
    expect(tryLock(path())).to.have.property('release');
  });
});

describe('secrets of an instance', () => {
  const folder = useTempFolder();

  it('are made once, and only their owner can read them', () => {
    const path = join(folder(), 'secrets.json');
    expect(readSecrets(path)).to.equal(null);
    const secrets = ensureSecrets(path);
    expect(ensureSecrets(path)).to.deep.equal(secrets);
    expect(readSecrets(path)).to.deep.equal(secrets);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
    expect(secrets.jwtSecret).to.match(/^[\w-]{64}$/);
    expect(secrets.mysqlPassword).to.match(/^[\w-]{24}$/);
  });

  it('throw and stay when they are damaged', () => {
    const path = join(folder(), 'secrets.json');
    writeFileSync(path, '{"mysqlPassword":1}');
    expect(() => ensureSecrets(path)).to.throw(/is damaged/);
    expect(readFileSync(path, 'utf8')).to.equal('{"mysqlPassword":1}');
  });
});

describe('ports of an instance', () => {
  const folder = useTempFolder();
  const file = (): string => join(folder(), 'instance.json');

  it('are the chosen ports at first and the remembered ports later', () => {
    expect(loadPorts(file(), 'default')).to.equal(DEFAULT_PORTS);
    const free = loadPorts(file(), 'free');
    rememberInstance(file(), { ports: free });
    expect(loadPorts(file(), 'default')).to.deep.equal(free);
    expect(loadPorts(file(), 'free')).to.deep.equal(free);
  });

  it('are read when the file uses an older name', () => {
    const { mysql, ...others } = DEFAULT_PORTS;
    writeFileSync(file(), JSON.stringify({ ports: { ...others, mariadb: mysql } }));
    expect(loadPorts(file(), 'free')).to.deep.equal(DEFAULT_PORTS);
  });

  it('throw a sentence when the file is damaged', () => {
    writeFileSync(file(), 'oops');
    expect(() => loadPorts(file(), 'default')).to.throw(/instance\.json is damaged/);
  });
});

describe('servers of an instance', () => {
  const folder = useTempFolder();

  it('stay as chosen at the first start, or are the defaults before any choice', () => {
    const paths = stackPaths(folder());
    expect(loadVersions(paths), 'before the first start').to.equal(null);
    rememberInstance(paths.instanceFile, { ports: DEFAULT_PORTS });
    expect(loadVersions(paths), 'with ports alone').to.equal(null);
    mkdirSync(paths.data('redis'), { recursive: true });
    expect(loadVersions(paths), 'with data').to.deep.equal(DEFAULT_VERSIONS);
    const own = { SECKILL_MYSQLD: '/usr/sbin/mysqld' };
    expect(loadVersions(paths, own), 'with data, and a server of one’s own').to.include({ mysql: 'own', redis: '6.2' });
    const chosen = { mysql: '9.7', redis: 'valkey', rocketmq: '5.4' } as const;
    rememberInstance(paths.instanceFile, { ports: DEFAULT_PORTS, servers: chosen });
    expect(loadVersions(paths)).to.deep.equal(chosen);
  });

  it('keep their data: another server is refused before anything starts', async () => {
    const paths = stackPaths(folder());
    rememberInstance(paths.instanceFile, { ports: pickFreePorts([]), servers: DEFAULT_VERSIONS });
    const stack = openStack({ dir: folder(), versions: { mysql: '8.0' }, env: {} });
    expect(stack.versions, 'what its data is of').to.deep.equal(DEFAULT_VERSIONS);
    const error = await stack.up().catch((cause: unknown) => cause);
    expect(error)
      .to.be.instanceOf(StackError)
      .with.property('message')
      .match(/has data of MySQL mariadb-11\.4, not of 8\.0/);
  });
});

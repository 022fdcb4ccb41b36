import { expect } from 'chai';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_PORTS, pickFreePorts } from '../../../deploy/local/stack/ports.js';
import { loadPorts, rememberInstance, ensureSecrets, readSecrets } from '../../../deploy/local/stack/settings.js';
import { tryLock } from '../../../deploy/local/stack/processes.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
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

  it('can be taken if its owner is dead [L2]', () => {
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

  it('throw an error and stay unchanged if they are damaged', () => {
    const path = join(folder(), 'secrets.json');
    writeFileSync(path, '{"mysqlPassword":1}');
    expect(() => ensureSecrets(path)).to.throw(/is damaged/);
    expect(readFileSync(path, 'utf8')).to.equal('{"mysqlPassword":1}');
  });
});

describe('ports of an instance', () => {
  const folder = useTempFolder();
  const file = (): string => join(folder(), 'instance.json');

  it('are the chosen ports at first, and later the remembered ports', () => {
    expect(loadPorts(file(), 'default')).to.equal(DEFAULT_PORTS);
    const free = loadPorts(file(), 'free');
    rememberInstance(file(), { ports: free });
    expect(loadPorts(file(), 'default')).to.deep.equal(free);
    expect(loadPorts(file(), 'free')).to.deep.equal(free);
  });

  it('throw one sentence if the file is damaged', () => {
    writeFileSync(file(), 'oops');
    expect(() => loadPorts(file(), 'default')).to.throw(/instance\.json is damaged/);
  });
});

describe('servers of an instance', () => {
  const folder = useTempFolder();

  it('keep their data: `npm start` refuses a different server before anything starts', async () => {
    const paths = stackPaths(folder());
    rememberInstance(paths.instanceFile, { ports: pickFreePorts([]), servers: DEFAULT_VERSIONS });
    const stack = openStack({ dir: folder(), versions: { mysql: '8.0' }, env: {} });
    expect(stack.versions, 'the server of its data').to.deep.equal(DEFAULT_VERSIONS);
    const error = await stack.up().catch((cause: unknown) => cause);
    expect(error)
      .to.be.instanceOf(StackError)
      .with.property('message')
      .match(/has data of MySQL mariadb-11\.4, not of 8\.0/);
  });

  it("refuse TLS with the stack's MySQL 8.0 before anything starts", async () => {
    const stack = openStack({ dir: folder(), ports: 'free', versions: { mysql: '8.0' }, secure: true, env: {} });
    const error = await stack.up({ signal: AbortSignal.abort() }).catch((cause: unknown) => cause);
    expect(error)
      .to.be.instanceOf(StackError)
      .with.property('message')
      .match(/MySQL 8\.0 that the stack brings does not accept TLS/);
  });
});

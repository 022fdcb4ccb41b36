import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  certificateFiles,
  ensureCertificates,
  makeAuthority,
  makeCertificate,
} from '../../../deploy/local/stack/certificates.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { DEFAULT_PORTS } from '../../../deploy/local/stack/ports.js';
import { mysqlSpec } from '../../../deploy/local/stack/servers/mysql.js';
import { openStack } from '../../../deploy/local/stack/stack.js';
import { REDIS_RIGHTS } from '../../../deploy/local/stack/servers/redis.js';
import type { Instance, Tools } from '../../../deploy/local/stack/servers/server-spec.js';
import {
  ensureSecrets,
  envLines,
  loadPorts,
  redisPassword,
  rememberInstance,
  stackEnv,
  wasSecure,
  writePasswords,
} from '../../../deploy/local/stack/settings.js';
import { DEFAULT_VERSIONS } from '../../../deploy/local/stack/versions.js';
import { loadConfig } from '../../../src/core/config/load.js';
import { useTempFolder } from './temp-folder.js';

const TOOLS: Tools = { java: 'java', artifacts: { rocketmqLib: '/lib', redisServer: '/redis', mysqld: '/mariadbd' } };
const DAY_MS = 86_400_000;

describe('a secure instance', () => {
  const folder = useTempFolder();
  const instance = (): Instance => ({
    paths: stackPaths(folder()),
    ports: DEFAULT_PORTS,
    versions: DEFAULT_VERSIONS,
    durability: 'process',
    certificates: certificateFiles(folder()),
  });
  const conf = (file: string): string => readFileSync(join(folder(), 'conf', file), 'utf8');

  it('keeps its certificates, and makes all of them anew when one is near its end or gone', async () => {
    const files = certificateFiles(folder());
    const kept = (): string => readFileSync(files.server, 'utf8');
    await ensureCertificates(files);
    const first = kept();
    for (const file of Object.values(files)) expect(statSync(file).mode & 0o777, file).to.equal(0o600);
    await ensureCertificates(files);
    expect(kept()).to.equal(first);
    const ending = { commonName: 'localhost', untilMs: Date.now() + 29 * DAY_MS };
    writeFileSync(files.server, (await makeCertificate(ending, await makeAuthority('x'))).cert);
    await ensureCertificates(files);
    const ca = new X509Certificate(readFileSync(files.ca));
    expect(new X509Certificate(kept()).checkIssued(ca)).to.equal(true);
    expect(Date.parse(new X509Certificate(kept()).validTo)).to.be.above(Date.now() + 60 * DAY_MS);
  });

  it('keeps valid certificates while servers run', async () => {
    const files = certificateFiles(folder());
    await ensureCertificates(files);
    const withDaysLeft = async (days: number): Promise<string> => {
      const ending = { commonName: 'localhost', untilMs: Date.now() + days * DAY_MS };
      const { cert } = await makeCertificate(ending, await makeAuthority('x'));
      writeFileSync(files.server, cert);
      return cert;
    };
    const ending = await withDaysLeft(1);
    await ensureCertificates(files, false);
    expect(readFileSync(files.server, 'utf8'), 'the others know this authority').to.equal(ending);
    const ended = await withDaysLeft(-1);
    await ensureCertificates(files, false);
    expect(readFileSync(files.server, 'utf8')).not.to.equal(ended);
  });

  it('refuses the MySQL 8.0 of the stack before anything is started', async () => {
    const stack = openStack({ dir: folder(), ports: 'free', versions: { mysql: '8.0' }, secure: true, env: {} });
    const error = await stack.up().catch((cause: unknown) => cause);
    expect((error as Error).message).to.match(/MySQL 8\.0 .* does not accept TLS .* --mysql/);
    expect(existsSync(join(folder(), 'data'))).to.equal(false);
  });

  it('gives the user of Redis the rights of the documentation', () => {
    const page = readFileSync(new URL('../../../docs/security.md', import.meta.url), 'utf8');
    expect(page).to.contain(`\nuser seckill on >PASSWORD ${REDIS_RIGHTS}\n`);
  });

  it('asks users of MariaDB for a certificate, and stops asking without TLS', async () => {
    const mariadbd = join(folder(), 'mariadb', 'bin', 'mariadbd');
    mkdirSync(join(folder(), 'mariadb', 'bin'), { recursive: true });
    mkdirSync(join(folder(), 'mariadb', 'share'));
    writeFileSync(mariadbd, '');
    writeFileSync(join(folder(), 'mariadb', 'share', 'mariadb_system_tables.sql'), '');
    mkdirSync(join(folder(), 'data', 'mariadb'), { recursive: true }); // created by an earlier start
    const tools = { ...TOOLS, artifacts: { ...TOOLS.artifacts, mysqld: mariadbd } };
    const init = (): string => readFileSync(join(folder(), 'conf', 'mariadb-init.sql'), 'utf8');
    const plain = { ...instance(), certificates: null };

    const first = await mysqlSpec(plain).prepare(tools);
    expect(conf('mariadb.cnf')).to.match(/^skip-ssl$/m);
    expect(first.args.join(' ')).not.to.contain('--init-file');
    await ensureCertificates(certificateFiles(folder()));
    const secured = await mysqlSpec(instance()).prepare(tools);
    expect(conf('mariadb.cnf'))
      .to.match(/^require_secure_transport = ON$/m)
      .and.match(/^ssl-ca = ".*ca\.pem"$/m)
      .and.not.match(/skip-ssl/);
    expect(secured.args.join(' ')).to.contain('--init-file');
    expect(init()).to.equal("ALTER USER 'seckill'@'127.0.0.1' REQUIRE X509;\n");
    const again = await mysqlSpec(plain).prepare(tools);
    expect(conf('mariadb.cnf')).to.match(/^skip-ssl$/m);
    expect(again.args.join(' ')).to.contain('--init-file');
    expect(init()).to.equal("ALTER USER 'seckill'@'127.0.0.1' REQUIRE NONE;\n");
  });

  it('keeps passwords of MySQL and Redis in files, not in the environment', async () => {
    const files = certificateFiles(folder());
    await ensureCertificates(files);
    const secrets = ensureSecrets(stackPaths(folder()).secretsFile);
    writePasswords(files, secrets);
    const env = stackEnv(DEFAULT_PORTS, secrets, files);
    const config = loadConfig(['mysql', 'redis', 'brokerAccess'], { ...env });
    expect([config.mysql.password(), config.redis.password()]).to.deep.equal([
      secrets.mysqlPassword,
      redisPassword(secrets),
    ]);
    expect([config.mysql.tls, config.brokerAccess.tls, config.redis.url]).to.deep.equal([
      'on',
      'on',
      'rediss://seckill@127.0.0.1:16379',
    ]);
    const lines = envLines(env);
    expect(lines).not.to.contain(secrets.mysqlPassword).and.not.to.contain(redisPassword(secrets));
    for (const line of lines.trimEnd().split('\n')) expect(line).to.match(/^export [A-Z_]+=[\w:/@.-]+$/);
  });

  it('remembers that it is secure, with its ports', () => {
    const { instanceFile } = stackPaths(folder());
    expect([existsSync(instanceFile), wasSecure(instanceFile)]).to.deep.equal([false, false]);
    rememberInstance(instanceFile, { ports: DEFAULT_PORTS, secure: true });
    expect([wasSecure(instanceFile), loadPorts(instanceFile, 'default')]).to.deep.equal([true, { ...DEFAULT_PORTS }]);
    rememberInstance(instanceFile, { ports: DEFAULT_PORTS });
    expect(wasSecure(instanceFile)).to.equal(false);
  });
});

import { readFileSync, writeFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  certificateFiles,
  ensureCertificates,
  makeAuthority,
  makeCertificate,
} from '../../../deploy/local/stack/certificates.js';
import { stackPaths } from '../../../deploy/local/stack/paths.js';
import { DEFAULT_PORTS } from '../../../deploy/local/stack/ports.js';
import { REDIS_RIGHTS } from '../../../deploy/local/stack/servers/redis.js';
import {
  ensureSecrets,
  envLines,
  redisPassword,
  stackEnv,
  writePasswords,
} from '../../../deploy/local/stack/settings.js';
import { loadConfig } from '../../../src/core/config/load.js';
import { useTempFolder } from './temp-folder.js';

const DAY_MS = 86_400_000;

describe('a secure instance', () => {
  const folder = useTempFolder();

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

  it('gives the Redis user the documented rights', () => {
    const page = readFileSync(new URL('../../../docs/security.md', import.meta.url), 'utf8');
    expect(page).to.contain(`\nuser seckill on >PASSWORD ${REDIS_RIGHTS}\n`);
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
});

import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPO_DIR } from '../../../deploy/local/stack/paths.js';
import { StackError } from '../../../deploy/local/stack/stack-error.js';
import {
  DEFAULT_VERSIONS,
  OWN_SERVERS,
  VERSION_SETTINGS,
  VERSIONS,
  versionsIn,
  wantedVersions,
} from '../../../deploy/local/stack/versions.js';

describe('the choice of servers', () => {
  it('prefers an option, then your own server, then a setting, then the default', () => {
    const env = { SECKILL_MYSQL: '8.0', SECKILL_REDIS: 'valkey', SECKILL_REDIS_SERVER: '/own', SECKILL_ROCKETMQ: '' };
    expect(wantedVersions({}, {})).to.deep.equal({});
    expect(wantedVersions({}, env)).to.deep.equal({ mysql: '8.0', redis: 'own' });
    expect(wantedVersions({ redis: '7' }, env)).to.deep.equal({ mysql: '8.0', redis: '7' });
    expect(versionsIn({ SECKILL_MYSQL: '9.7' })).to.deep.equal({ ...DEFAULT_VERSIONS, mysql: '9.7' });
  });

  it('throws an error that lists the known versions if a version is unknown', () => {
    expect(() => wantedVersions({}, { SECKILL_MYSQL: '5.7' }))
      .to.throw(StackError)
      .with.property('message', 'SECKILL_MYSQL is 5.7; the stack can run mariadb-11.4, 8.0, 9.7.');
  });

  it('is documented with every option value and setting', () => {
    const page = readFileSync(join(REPO_DIR, 'docs/servers.md'), 'utf8');
    const words = Object.values(VERSIONS).flat();
    const settings = [...Object.values(VERSION_SETTINGS), ...Object.values(OWN_SERVERS)];
    for (const word of [...words, ...settings]) expect(page, word).to.include(`\`${word}\``);
  });
});

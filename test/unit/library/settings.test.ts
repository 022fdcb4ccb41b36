import { expect } from 'chai';
import { ConfigError, loadConfig, withSettings } from '../../../src/core/config/load.js';
import { createSeckill, startKeeper, startWorker } from '../../../src/library/index.js';
import { allOrNothing } from '../../../src/process/all-or-nothing.js';

describe('settings of the library', () => {
  it('override the environment, which supplies the other settings', () => {
    const around = { REDIS_URL: 'redis://b', LOG_LEVEL: 'warn' };
    const env = withSettings({ REDIS_URL: 'redis://a', BATCH_SIZE_MAX: 7, LOG_LEVEL: undefined }, around);
    const noFile = { REDIS_URL_FILE: '' }; // a file from the environment must not replace the given url
    expect(env).to.deep.equal({ REDIS_URL: 'redis://a', ...noFile, BATCH_SIZE_MAX: '7', LOG_LEVEL: 'warn' });
    expect(loadConfig(['log'], env).log.level).to.equal('warn');
  });

  it('are refused with the most similar name if the library does not know them', async () => {
    const refused = async (settings: object): Promise<unknown> =>
      createSeckill({ env: {}, settings }).catch((error: unknown) => error);
    const error = await refused({ BATCH_SIZE: 7, redis_url: 'redis://a', PORT: 80, JWT_SECRET_FIL: 'x' });
    expect(error).to.be.instanceOf(ConfigError);
    expect((error as ConfigError).problems).to.deep.equal([
      'BATCH_SIZE is not a setting of the library: did you mean BATCH_SIZE_MAX?',
      'redis_url is not a setting of the library: did you mean REDIS_URL?',
      'PORT is not a setting of the library',
      'JWT_SECRET_FIL is not a setting of the library: did you mean JWT_SECRET_FILE?',
    ]);
    for (const start of [startWorker, startKeeper]) {
      const other = await start({ env: {}, settings: { NO_SUCH: 1 } as object }).catch((thrown: unknown) => thrown);
      expect((other as ConfigError).problems[0]).to.match(/^NO_SUCH is not/);
    }
    const old = (await refused({ REDRIVE_MAX: 1 })) as ConfigError;
    expect(old.problems.join(), 'of an earlier release').not.to.contain('REDRIVE_MAX');
  });

  it('are all checked before anything opens, and require token keys only where tokens are read', async () => {
    const problemsOf = async (start: () => Promise<unknown>): Promise<readonly string[]> => {
      const error = await start().catch((thrown: unknown) => thrown);
      expect(error).to.be.instanceOf(ConfigError);
      return (error as ConfigError).problems.map((problem) => problem.split(' ')[0] as string);
    };
    const servers = ['REDIS_URL', 'ROCKETMQ_ENDPOINT', 'MESSAGE_KEYS', 'MYSQL_URL'];
    const env = {};
    const settings = { BATCH_SIZE_MAX: 0 };
    expect(await problemsOf(() => createSeckill({ env, settings }))).to.have.members([
      'BATCH_SIZE_MAX',
      ...servers,
      'JWT_SECRET',
    ]);
    expect(await problemsOf(() => createSeckill({ env, authenticate: () => null }))).to.have.members(servers);
    expect(await problemsOf(() => startWorker({ env }))).to.have.members(servers);
    expect(await problemsOf(() => startKeeper({ env }))).to.have.members(servers);
  });
});

describe('parts that open together', () => {
  it('close in reverse order if one part fails, even if another part cannot close', async () => {
    const closed: string[] = [];
    const opening = allOrNothing(async (opened) => {
      opened(async () => closed.push('redis'));
      opened(() => Promise.reject(new Error('hangs')));
      opened(async () => closed.push('mysql'));
      throw new Error('no broker');
    });
    expect(await opening.catch((error: unknown) => (error as Error).message)).to.equal('no broker');
    expect(closed).to.deep.equal(['mysql', 'redis']);
  });

  it('stay open if every part opens', async () => {
    let isClosed = false;
    const part = await allOrNothing(async (opened) => {
      opened(async () => (isClosed = true));
      return 'it';
    });
    expect([part, isClosed]).to.deep.equal(['it', false]);
  });
});

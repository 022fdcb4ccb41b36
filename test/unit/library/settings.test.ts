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

  it('are all checked before anything opens, and need token keys only where tokens are read', async () => {
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
  it('close in reverse order when one part fails, even if another part cannot close', async () => {
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

  it('stay open when every part opens', async () => {
    let isClosed = false;
    const part = await allOrNothing(async (opened) => {
      opened(async () => (isClosed = true));
      return 'it';
    });
    expect([part, isClosed]).to.deep.equal(['it', false]);
  });
});

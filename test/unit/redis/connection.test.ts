import { expect } from 'chai';
import { Redis, ReplyError } from 'ioredis';
import { Bug, OperationalError } from '../../../src/core/errors.js';
import { asOperationalError, eachOrFault, reasonOf } from '../../../src/redis/connection.js';

/** The driver itself makes these messages, so a version with other messages fails the test. */
describe('redis: reason of a failed command', () => {
  const messageOf = async (options: object, act: (redis: Redis) => Promise<unknown>): Promise<string> => {
    const redis = new Redis(1, '127.0.0.1', { lazyConnect: true, ...options }); // port 1 is closed
    redis.on('error', () => undefined);
    try {
      return await act(redis).then(() => 'done', reasonOf);
    } finally {
      redis.disconnect();
    }
  };

  it('is in the message if a command has no connection', async () => {
    const connecting = (redis: Redis): Promise<unknown> => {
      void redis.connect().catch(() => undefined);
      return redis.time();
    };
    expect(await messageOf({ enableOfflineQueue: false }, connecting)).to.equal('there is no connection to Redis');
  });

  it('is in the message if a command loses its connection', async () => {
    const options = { maxRetriesPerRequest: 0, retryStrategy: () => 1 };
    expect(await messageOf(options, (redis) => redis.time())).to.equal('the connection to Redis was lost');
  });

  it('keeps the words of the server', () => {
    expect(reasonOf(new Error('OOM command not allowed'))).to.equal('OOM command not allowed');
    expect(reasonOf(new Error('Command timed out'))).to.equal('Redis did not answer in time');
  });
});

describe('redis: error of a call', () => {
  const failing = (cause: unknown) => () => Promise.reject(cause as Error);
  const thrownBy = (call: Promise<unknown>): Promise<unknown> =>
    call.then(
      () => 'done',
      (error: unknown) => error,
    );

  it("is an error of the operation, converted once from the driver's error", async () => {
    const error = await thrownBy(asOperationalError('read a sale', failing(new Error('LOADING'))));
    expect(error).to.be.instanceOf(OperationalError).and.include({ message: 'read a sale: LOADING', retryable: true });
    expect(await thrownBy(asOperationalError('add a bucket up', failing(error)))).to.equal(error);
  });

  it('is retryable unless the server would give the same error again [G14]', async () => {
    const isRetryable = async (cause: unknown): Promise<unknown> =>
      ((await thrownBy(asOperationalError('deduct', failing(cause)))) as OperationalError).retryable;
    const reply = (message: string): Error => new (ReplyError as new (message: string) => Error)(message);
    for (const message of [
      'ERR user_script:18: Expected value but found invalid unicode escape code at character 94 script: 1f, on @user_script:18.',
      'ERR Error running script (call to f_1f): @user_script:18: user_script:18: Expected value but found invalid token',
      'WRONGTYPE Operation against a key holding the wrong kind of value',
      'ERR value is not an integer or out of range',
    ]) {
      expect(await isRetryable(reply(message)), message).to.equal(false);
    }
    for (const message of [
      "OOM command not allowed when used memory > 'maxmemory'. script: 1f, on @user_script:44.",
      "ERR Error running script (call to f_1f): @user_script:44: @user_script: 44: -OOM command not allowed when used memory > 'maxmemory'.",
      "ERR Error running script (call to f_1f): @user_script:44: @user_script: 44: -READONLY You can't write against a read only replica.",
      ...['MISCONF Redis is configured to save', 'READONLY You cannot', 'NOREPLICAS Not enough', 'LOADING Redis is'],
      ...['MASTERDOWN Link with', 'BUSY Redis is busy', 'NOSCRIPT No matching', 'MOVED 1 :7', 'ASK 1 :7', 'TRYAGAIN M'],
      ...['CLUSTERDOWN The', 'NOAUTH Authentication', 'WRONGPASS invalid', 'NOPERM this user', 'UNKILLABLE Sorry'],
      ...['ERR max number of clients reached', 'ERR Error running script: Script killed by user with SCRIPT KILL.'],
    ]) {
      expect(await isRetryable(reply(message)), message).to.equal(true);
    }
    for (const message of ['Command timed out', 'Connection is closed.', 'ERR says no server']) {
      expect(await isRetryable(new Error(message)), message).to.equal(true);
    }
  });

  it('is the bug itself, not a retryable error, if a reply is unreadable', async () => {
    const bug = new Bug('a script answered 7 instead of a list');
    expect(await thrownBy(asOperationalError('release units', failing(bug)))).to.equal(bug);
    expect(await thrownBy(eachOrFault('read units', [1], failing(bug)))).to.equal(bug);
  });

  it('affects only its own bucket among many', async () => {
    const found = await eachOrFault('read units', [1, 2], (n) =>
      n === 1 ? Promise.resolve(n) : Promise.reject(new Error('down')),
    );
    expect(found[0]).to.equal(1);
    expect(found[1]).to.be.instanceOf(OperationalError).and.include({ message: 'read units: down' });
  });
});

import { expect } from 'chai';
import { Redis } from 'ioredis';
import { reasonOf } from '../../../src/redis/connection.js';

/** The words come from the driver itself, so that a new version of it with other words is noticed. */
describe('redis: what was wrong, for a person', () => {
  const messageOf = async (options: object, act: (redis: Redis) => Promise<unknown>): Promise<string> => {
    const redis = new Redis(1, '127.0.0.1', { lazyConnect: true, ...options }); // port 1 is closed
    redis.on('error', () => undefined);
    try {
      return await act(redis).then(() => 'done', reasonOf);
    } finally {
      redis.disconnect();
    }
  };

  it('a command without a connection: the message names it', async () => {
    const connecting = (redis: Redis): Promise<unknown> => {
      void redis.connect().catch(() => undefined);
      return redis.time();
    };
    expect(await messageOf({ enableOfflineQueue: false }, connecting)).to.equal('there is no connection to Redis');
  });

  it('a command whose connection was lost: the message names it', async () => {
    const options = { maxRetriesPerRequest: 0, retryStrategy: () => 1 };
    expect(await messageOf(options, (redis) => redis.time())).to.equal('the connection to Redis was lost');
  });

  it('leaves the words of the server as they are', () => {
    expect(reasonOf(new Error('OOM command not allowed'))).to.equal('OOM command not allowed');
    expect(reasonOf(new Error('Command timed out'))).to.equal('Redis did not answer in time');
  });
});

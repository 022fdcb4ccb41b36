import { expect } from 'chai';
import type { Release } from '../../../src/core/ports/batch-store.js';
import { createBatchStore } from '../../../src/redis/batch-store.js';
import type { RedisConnection } from '../../../src/redis/connection.js';

describe('redis: release', () => {
  /** Creates a Redis whose scripts end one after another, and counts the peak number under way. */
  function countingRedis() {
    const seen = { underWay: 0, most: 0, all: 0 };
    const run = async (_script: string, _keys: readonly string[], [userId]: readonly unknown[]) => {
      seen.all++;
      seen.most = Math.max(seen.most, ++seen.underWay);
      await new Promise(setImmediate);
      seen.underWay--;
      return [userId === 'u7' ? 'nothing' : 'released', 1];
    };
    const redis = { hmget: async () => ['open', '1'] };
    return { seen, connection: { redis, run } as unknown as RedisConnection };
  }
  const releases = Array.from({ length: 500 }, (_, index): Release => {
    const of = { saleId: '1', bucket: 0, userId: `u${index}`, requestId: 'k1', batchId: '' };
    return { ...of, orderId: String(index), withUnits: true };
  });

  it('sends every script of a mass expiry, at most 64 at a time', async () => {
    const { seen, connection } = countingRedis();
    const words = await createBatchStore(connection).release(releases);
    expect(seen).to.deep.equal({ underWay: 0, most: 64, all: 500 });
    expect(words, 'each at the place of its release').to.deep.equal(
      releases.map(({ userId }) => (userId === 'u7' ? 'nothing' : 'released')),
    );
  });
});

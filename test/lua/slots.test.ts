import { expect } from 'chai';
import { bucketKeys, snapshotKey, snapshotLockKey } from '../../src/redis/keys.js';

/** Returns the part of a key that a Redis cluster hashes. Keys with the same part are on the same server. */
const tagOf = (key: string): string | undefined => /\{([^}]+)\}/.exec(key)?.[1];
const stockKey = (bucket: number): string => bucketKeys({ saleId: '7', bucket }).stock;

describe('lua: places of keys in a Redis cluster', () => {
  it('puts the sale snapshot with its first bucket, so that an outage of a server stops only its own sales', () => {
    for (const key of [snapshotKey('7'), snapshotLockKey('7')]) expect(tagOf(key)).to.equal(tagOf(stockKey(0)));
  });

  it('places each bucket of a sale by itself', () => {
    const tags = Array.from({ length: 16 }, (_, bucket) => tagOf(stockKey(bucket)));
    expect(new Set(tags).add(undefined).size).to.equal(17);
  });
});

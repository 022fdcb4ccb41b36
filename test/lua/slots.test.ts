import { expect } from 'chai';
import { newBatchId } from '../../src/core/batch.js';
import {
  BREAKER_UNTIL_KEY,
  BREAKER_VOTES_KEY,
  bucketKeys,
  snapshotKey,
  snapshotLockKey,
  limitKeys,
} from '../../src/redis/keys.js';
import { freshSaleId } from '../helpers/sales.js';

/** Computes CRC16 XMODEM, which Redis Cluster uses to assign keys to slots (the page "Redis cluster specification"). */
function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}

/** Returns the slot of a key. Only the text in its first braces counts, unless it is empty. */
function slotOf(key: string): number {
  const [, tag] = /\{([^}]+)\}/.exec(key) ?? [];
  return crc16(tag ?? key) % 16384;
}

const keysOf = (saleId: string, bucket: number): string[] => {
  const { tx, ...keys } = bucketKeys({ saleId, bucket });
  return [...Object.values(keys), tx + newBatchId(), tx + newBatchId()];
};

describe('lua: slots', () => {
  it('computes the same slots as Redis (the examples of the page on CLUSTER KEYSLOT)', () => {
    expect(slotOf('somekey')).to.equal(11058);
    expect(slotOf('foo{hash_tag}')).to.equal(2515);
    expect(slotOf('bar{hash_tag}')).to.equal(2515);
  });

  it('puts all keys of a bucket into one slot, whatever the ids', () => {
    for (const saleId of ['1', '7', freshSaleId(), '999999999999999999']) {
      for (const bucket of [0, 1, 63]) {
        expect(new Set(keysOf(saleId, bucket).map(slotOf)).size, `${saleId}:${bucket}`).to.equal(1);
      }
    }
  });

  it('puts the sale snapshot with its first bucket, so that an outage of a server stops only its own sales', () => {
    const slots = [bucketKeys({ saleId: '7', bucket: 0 }).sale, snapshotKey('7'), snapshotLockKey('7')].map(slotOf);
    expect(new Set(slots).size).to.equal(1);
  });

  it('puts all keys of the limits into one slot', () => {
    const windows = (['ip', 'user'] as const).flatMap((kind) => limitKeys.window('purchase', kind, 1000));
    const keys = [limitKeys.bucket('purchase'), limitKeys.bucket('sale'), ...windows];
    expect(new Set(keys).size).to.equal(6);
    expect(new Set(keys.map(slotOf)).size).to.equal(1);
  });

  it('spreads the buckets of a sale over the slots', () => {
    const slots = Array.from({ length: 16 }, (_, bucket) => slotOf(keysOf('7', bucket)[0] as string));
    expect(new Set(slots).size).to.be.greaterThan(12);
  });

  it('puts all keys of admission into one slot', () => {
    expect(new Set([BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY].map(slotOf)).size).to.equal(1);
  });

  it('gives every key a distinct name that is not empty', () => {
    const names = [...Object.values(bucketKeys({ saleId: '7', bucket: 0 })), snapshotKey('7'), snapshotLockKey('7')];
    expect(new Set(names).size).to.equal(names.length);
  });
});

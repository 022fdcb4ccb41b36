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

/** CRC16 XMODEM, by which a Redis cluster assigns keys to slots (the page "Redis cluster specification"). */
function crc16(text: string): number {
  let crc = 0;
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
  }
  return crc;
}

/** The slot of a key: only what is in its first braces counts, if they are not empty. */
function slotOf(key: string): number {
  const [, tag] = /\{([^}]+)\}/.exec(key) ?? [];
  return crc16(tag ?? key) % 16384;
}

const keysOf = (saleId: string, bucket: number): string[] => {
  const { tx, ...keys } = bucketKeys({ saleId, bucket });
  return [...Object.values(keys), tx + newBatchId(), tx + newBatchId()];
};

describe('lua: slots', () => {
  it('the slots are those that Redis computes (the examples of the page on CLUSTER KEYSLOT)', () => {
    expect(slotOf('somekey')).to.equal(11058);
    expect(slotOf('foo{hash_tag}')).to.equal(2515);
    expect(slotOf('bar{hash_tag}')).to.equal(2515);
  });

  it('all keys of a bucket are in one slot, whatever the ids', () => {
    for (const saleId of ['1', '7', freshSaleId(), '999999999999999999']) {
      for (const bucket of [0, 1, 63]) {
        expect(new Set(keysOf(saleId, bucket).map(slotOf)).size, `${saleId}:${bucket}`).to.equal(1);
      }
    }
  });

  it('the snapshot of a sale is where its first bucket is: a server that is away stops its own sales and no others', () => {
    const slots = [bucketKeys({ saleId: '7', bucket: 0 }).sale, snapshotKey('7'), snapshotLockKey('7')].map(slotOf);
    expect(new Set(slots).size).to.equal(1);
  });

  it('all keys of the limits are in one slot', () => {
    const windows = (['ip', 'user'] as const).flatMap((kind) => limitKeys.window('purchase', kind, 1000));
    const keys = [limitKeys.bucket('purchase'), limitKeys.bucket('sale'), ...windows];
    expect(new Set(keys).size).to.equal(6);
    expect(new Set(keys.map(slotOf)).size).to.equal(1);
  });

  it('buckets of a sale spread over the slots', () => {
    const slots = Array.from({ length: 16 }, (_, bucket) => slotOf(keysOf('7', bucket)[0] as string));
    expect(new Set(slots).size).to.be.greaterThan(12);
  });

  it('all keys of admission are in one slot', () => {
    expect(new Set([BREAKER_VOTES_KEY, BREAKER_UNTIL_KEY].map(slotOf)).size).to.equal(1);
  });

  it('no key is an empty or a shared name', () => {
    const names = [...Object.values(bucketKeys({ saleId: '7', bucket: 0 })), snapshotKey('7'), snapshotLockKey('7')];
    expect(new Set(names).size).to.equal(names.length);
  });
});

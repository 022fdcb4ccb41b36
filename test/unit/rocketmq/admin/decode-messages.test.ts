import { expect } from 'chai';
import { deflateSync } from 'node:zlib';
import { decodeMessages } from '../../../../src/rocketmq/admin/decode-messages.js';

interface Parts {
  readonly topic?: string;
  readonly body?: Buffer;
  readonly properties?: string;
  readonly flags?: number;
  readonly storedAtMs?: number;
}

const [V6_BORN, V6_STORED] = [1 << 4, 1 << 5];

/** A message as the commit log keeps it; the topic of a long one has a length of two bytes. */
function record({ topic = 'T', body = Buffer.from('hi'), properties = '', flags = 0, storedAtMs = 7 }: Parts): Buffer {
  const int32 = (value: number): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(value);
    return bytes;
  };
  const int64 = (value: number): Buffer => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64BE(BigInt(value));
    return bytes;
  };
  const int16 = (value: number): Buffer => int32(value).subarray(2);
  const isLong = topic.length > 127;
  const rest = Buffer.concat([
    int32(isLong ? -626_843_477 : -626_843_481),
    int32(0),
    int32(3), // queue
    int32(0),
    int64(42), // its offset
    int64(4096), // of the log
    int32(flags),
    int64(5), // born
    Buffer.alloc((flags & V6_BORN) === 0 ? 8 : 20),
    int64(storedAtMs),
    Buffer.alloc((flags & V6_STORED) === 0 ? 8 : 20, 0xab),
    int32(2), // deliveries
    int64(0),
    int32(body.length),
    body,
    isLong ? int16(topic.length) : Buffer.from([topic.length]),
    Buffer.from(topic),
    int16(properties.length),
    Buffer.from(properties),
  ]);
  return Buffer.concat([int32(rest.length + 4), rest]);
}

describe('messages as the broker stores them', () => {
  it('every part of one is read', () => {
    const [message] = decodeMessages(record({ properties: 'KEYS\u0001k1\u0002TAGS\u0001x\u0002' }));
    expect(message).to.deep.equal({
      topic: 'T',
      queueId: 3,
      queueOffset: 42,
      physicalOffset: 4096,
      offsetId: 'ABABABABABABABAB0000000000001000',
      bornAtMs: 5,
      storedAtMs: 7,
      deliveries: 2,
      body: Buffer.from('hi'),
      properties: { KEYS: 'k1', TAGS: 'x' },
    });
  });

  it('hosts of IPv4 and IPv6, long topics, compressed bodies, and a last property without its end', () => {
    const long = 'x'.repeat(200);
    const bytes = Buffer.concat([
      record({ flags: V6_BORN, properties: 'A\u0001b' }),
      record({ flags: V6_STORED, topic: long }),
      record({ flags: V6_BORN | V6_STORED | 1, body: deflateSync('zipped') }),
    ]);
    const [first, second, third] = decodeMessages(bytes);
    expect(first).to.deep.include({ topic: 'T', storedAtMs: 7, properties: { A: 'b' } });
    expect(second).to.deep.include({ topic: long, storedAtMs: 7, properties: {} });
    expect(second?.offsetId).to.equal(`${'AB'.repeat(20)}0000000000001000`);
    expect(third?.body.toString()).to.equal('zipped');
  });

  it('none in an empty answer; what is cut off or no message is an error', () => {
    expect(decodeMessages(Buffer.alloc(0))).to.deep.equal([]);
    const whole = record({});
    expect(() => decodeMessages(whole.subarray(0, whole.length - 1))).to.throw(/no whole messages/);
    expect(() => decodeMessages(Buffer.alloc(100))).to.throw(/no whole messages/);
  });
});

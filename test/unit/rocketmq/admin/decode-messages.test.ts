import { expect } from 'chai';
import { deflateSync } from 'node:zlib';
import { decodeMessages } from '../../../../src/rocketmq/admin/decode-messages.js';
import { RemotingError } from '../../../../src/rocketmq/admin/remoting.js';
import { storedMessage as record, V6_BORN, V6_STORED } from '../../../helpers/stored-message.js';

describe('messages stored by the broker', () => {
  it('are read with all their parts', () => {
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

  it('are read with IPv6 hosts, long topics, compressed bodies and an unterminated property', () => {
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

  it('are an empty list for an empty answer, and an error for broken bytes', () => {
    expect(decodeMessages(Buffer.alloc(0))).to.deep.equal([]);
    const whole = record({});
    expect(() => decodeMessages(whole.subarray(0, whole.length - 1))).to.throw(/no complete messages/);
    expect(() => decodeMessages(Buffer.alloc(100))).to.throw(/no complete messages/);
    const lying = record({ body: Buffer.alloc(100) });
    lying.writeInt32BE(1_000_000, 84); // makes the body end after the record
    for (const bytes of [whole.subarray(0, whole.length - 1), lying]) {
      expect(() => decodeMessages(bytes)).to.throw(RemotingError);
    }
  });

  it('keep their body if it is not really compressed or would be far too long', () => {
    const bomb = deflateSync(Buffer.alloc(64 * 1024 * 1024));
    for (const body of [Buffer.from('no zlib'), deflateSync('cut off').subarray(0, 8), bomb]) {
      expect(decodeMessages(record({ flags: 1, body }))[0]?.body.equals(body)).to.equal(true);
    }
  });
});

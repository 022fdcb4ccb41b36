import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { readKeyring } from '../../../src/core/hmac.js';
import {
  MessageSignatures,
  SIGNATURE_PROPERTY,
  type SignedMessages,
  type UnsignedMessages,
} from '../../../src/core/message-signatures.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBroker } from '../../helpers/memory/memory-broker.js';
import { MemoryDeadLetters } from '../../helpers/memory/memory-dead-letters.js';
import { batchOf, purchasesOf } from '../../helpers/sales.js';
import { signedMessages, TEST_SIGNATURES } from '../../helpers/signatures.js';

const OLD = 'old:a-key-of-last-year-of-forty-bytes-length';
const NEW = 'new:a-key-of-this-year-of-forty-bytes-length';
const ringOf = (keys: string, unsigned?: UnsignedMessages): MessageSignatures =>
  new MessageSignatures(readKeyring(keys), unsigned);

const TOPIC = 'a-topic';
const BODY = '{"v":1,"title":"größe"}';

describe('message signatures', () => {
  it('accept only an unchanged body, on the topic for which it was signed', () => {
    const ring = ringOf(OLD);
    const signature = ring.sign(TOPIC, BODY);
    expect(signature).to.match(/^old\.[A-Za-z0-9_-]{43}$/);
    expect(ring.check(TOPIC, BODY, signature)).to.equal('signed');
    expect(ring.check('b-topic', BODY, signature), 'another topic').to.equal('wrong_signature');
    expect(ring.check(TOPIC, BODY.replace('1', '2'), signature), 'another body').to.equal('wrong_signature');
  });

  it('are made with the first key and verified with every key, in a running program too', () => {
    const [before, between, after] = [ringOf(OLD), ringOf(`${NEW},${OLD}`), ringOf(NEW)];
    expect(between.check(TOPIC, BODY, before.sign(TOPIC, BODY))).to.equal('signed');
    expect(after.check(TOPIC, BODY, between.sign(TOPIC, BODY))).to.equal('signed');
    expect(after.check(TOPIC, BODY, before.sign(TOPIC, BODY))).to.equal('unknown_key');
  });

  it('return a defined result for any property value', () => {
    const ring = ringOf(OLD);
    const [, mac = ''] = ring.sign(TOPIC, BODY).split('.');
    for (const [signature, verdict] of [
      [undefined, 'unsigned'],
      ['', 'unknown_key'],
      [mac, 'unknown_key'],
      [`.${mac}`, 'unknown_key'],
      [`constructor.${mac}`, 'unknown_key'],
      ['old.', 'wrong_signature'],
      ['old', 'unknown_key'],
      [`old.${mac}.`, 'wrong_signature'],
      [`old.${mac}=`, 'wrong_signature'],
      [`old.${'ü'.repeat(43)}`, 'wrong_signature'],
    ] as const) {
      expect(ring.check(TOPIC, BODY, signature), String(signature)).to.equal(verdict);
    }
  });

  it('accept an unsigned message during an update, but never a wrong signature', () => {
    const ring = ringOf(NEW, 'accept');
    expect(ring.check(TOPIC, BODY, undefined)).to.equal('unsigned_accepted');
    expect(ring.check(TOPIC, BODY, '')).to.equal('unknown_key');
    expect(ring.check(TOPIC, BODY, ringOf(OLD).sign(TOPIC, BODY))).to.equal('unknown_key');
  });

  it('cannot be created without a key', () => {
    expect(() => new MessageSignatures(readKeyring(''))).to.throw(RangeError);
  });
});

describe('messages without a valid signature', () => {
  const WAY = { group: GROUPS.redriveWriter, topic: TOPICS.redrive };
  const batch = batchOf({ saleId: '7' }, purchasesOf('mallory'));
  let broker: MemoryBroker;
  let clock: ManualClock;
  let deadLetters: MemoryDeadLetters;
  let counted: string[];

  beforeEach(() => {
    clock = new ManualClock();
    broker = new MemoryBroker({ clock });
    deadLetters = new MemoryDeadLetters(clock);
    counted = [];
  });

  const metrics = {
    forged: (topic: string, forgery: string): void => void counted.push(`${topic} ${forgery}`),
    unsignedAccepted: (topic: string): void => void counted.push(`${topic} accepted`),
  };
  const checked = (parts: Parameters<typeof signedMessages>[0] = {}): SignedMessages =>
    signedMessages({ deadLetters, metrics, ...parts });
  const receive = async (messages = checked()): Promise<string[]> => {
    const source = messages.of(broker.source(WAY.topic, WAY.group), WAY);
    return (await source.receive(16)).map(({ body }) => body);
  };
  const forge = (body: string, signature?: string, properties: Record<string, string> = {}): void =>
    broker.publishRaw(WAY.topic, body, {
      ...properties,
      ...(signature === undefined ? {} : { [SIGNATURE_PROPERTY]: signature }),
    });

  it('are parked, counted and acked, while the valid messages among them arrive [S10]', async () => {
    forge('{', undefined);
    await broker.redriveChannel().publish(batch);
    forge(batch.body, TEST_SIGNATURES.sign(TOPICS.purchase, batch.body));
    forge(batch.body, `other.${'A'.repeat(43)}`);
    expect(await receive()).to.deep.equal([batch.body]);
    expect(counted).to.deep.equal([
      `${WAY.topic} unsigned`,
      `${WAY.topic} wrong_signature`,
      `${WAY.topic} unknown_key`,
    ]);
    expect(deadLetters.deadLetters.map(({ detail }) => detail.split(';')[0])).to.deep.equal([
      'it has no signature',
      'its signature does not match the key test, this body and this topic',
      'it names the key other, which is not in MESSAGE_KEYS of this process',
    ]);
    expect(broker.unfinished(WAY.topic, WAY.group), 'the true one').to.equal(1);
  });

  it('name no sale and no batch, so that a repair does not count them', async () => {
    const { saleId, batchId, body } = batch;
    forge(body, undefined, { saleId, batchId, topic: 'whatever' });
    await receive();
    const [one] = deadLetters.deadLetters;
    expect(one).to.include({ reason: 'forged', saleId: null, batchId: null, body, originTopic: WAY.topic });
    expect(await deadLetters.parkedBatches('', 10)).to.deep.equal([]);
  });

  it('do not replace a valid message with the same id, and are parked only once', async () => {
    forge('a');
    forge('a');
    await receive();
    expect(deadLetters.deadLetters).to.have.length(1);
    expect(deadLetters.deadLetters[0]?.messageId).to.match(/^forged-[0-9a-f]{64}$/);
    expect(deadLetters.deadLetters[0]?.detail, 'its own id is for people').to.match(
      /; 1 characters, message id memory-1$/,
    );
  });

  it('are truncated if they are long', async () => {
    forge('x'.repeat(1_000_000));
    await receive();
    expect(deadLetters.deadLetters[0]?.body).to.have.length(16_384);
    expect(deadLetters.deadLetters[0]?.detail).to.contain('1000000 characters');
  });

  it('let a receive continue until it gets a valid message or the queue is empty', async () => {
    for (let index = 0; index < 20; index++) forge(`forged ${index}`);
    await broker.redriveChannel().publish(batch);
    expect(await receive()).to.deep.equal([batch.body]);
    expect(await receive()).to.deep.equal([]);
    expect(deadLetters.deadLetters).to.have.length(20);
  });

  it('are redelivered while they cannot be parked, and reach no handler', async () => {
    forge('a');
    const away = { park: () => Promise.reject(new OperationalError('mysql', 'away', { retryable: true })) };
    expect(await receive(checked({ deadLetters: away }))).to.deep.equal([]);
    expect(broker.unfinished(WAY.topic, WAY.group)).to.equal(1);
    clock.advance(5_000);
    expect(await receive()).to.deep.equal([]);
    expect([broker.unfinished(WAY.topic, WAY.group), deadLetters.deadLetters.length]).to.deep.equal([0, 1]);
  });

  it('are counted and accepted during an update if they have no signature', async () => {
    forge('of an older program');
    const signatures = ringOf(NEW, 'accept');
    expect(await receive(checked({ signatures }))).to.deep.equal(['of an older program']);
    expect(counted).to.deep.equal([`${WAY.topic} accepted`]);
    expect(deadLetters.deadLetters).to.deep.equal([]);
  });
});

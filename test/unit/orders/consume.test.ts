import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import {
  consumeMessages,
  type ConsumerOptions,
  type ConsumerPorts,
  type MessageResult,
} from '../../../src/orders/consume-messages.js';
import { MemoryTracing } from '../../helpers/memory/memory-tracing.js';
import { KeeperWorld } from './keeper-world.js';

const TOPIC = TOPICS.orderEvent;
const GROUP = GROUPS.coupon;
const INVISIBLE_MS = 30_000;

describe('keeper: messages of a consumer group', () => {
  let world: KeeperWorld;
  let handled: string[];
  /** The outcome of each body. The default is `done`. */
  let answers: Map<string, () => MessageResult>;

  beforeEach(() => {
    world = new KeeperWorld();
    handled = [];
    answers = new Map();
  });

  const run = (parts: Partial<ConsumerPorts> = {}, options: Partial<ConsumerOptions> = {}): Promise<string> => {
    const { deadLetters, clock, log, metrics } = world;
    const handle = async (body: string): Promise<MessageResult> => {
      handled.push(body);
      return answers.get(body)?.() ?? { outcome: 'done' };
    };
    const source = world.broker.source(TOPIC, GROUP, INVISIBLE_MS);
    const ports = { source, ready: async () => undefined, handle, deadLetters, clock, log, metrics, ...parts };
    return consumeMessages(ports, { group: GROUP, topic: TOPIC, invisibleMs: INVISIBLE_MS, ...options })
      .runOnce()
      .then(
        () => 'done',
        (error: Error) => error.name,
      );
  };
  const unfinished = (): number => world.broker.unfinished(TOPIC, GROUP);
  const away = (retryable: boolean) => (): never => {
    throw new OperationalError('mysql', 'away', { retryable });
  };

  it('acks a finished message once', async () => {
    for (const body of ['a', 'b']) world.broker.publishRaw(TOPIC, body);
    await run();
    world.clock.advance(INVISIBLE_MS);
    await run();
    expect([handled, unfinished()]).to.deep.equal([['a', 'b'], 0]);
    expect(world.consumed).to.deep.equal([
      [GROUP, 'done'],
      [GROUP, 'done'],
    ]);
  });

  it('counts the last delivery as a dead letter if the messages have no collector', async () => {
    world.broker.publishRaw(TOPIC, 'fails');
    answers.set('fails', away(false));
    for (const _ of [1, 2, 3]) {
      await run({}, { attemptsMax: 3 });
      world.clock.advance(120_000);
    }
    expect(world.consumed.map(([, verdict]) => verdict)).to.deep.equal(['failed', 'failed', 'dead_letter']);
    expect(world.errors.at(-1)).to.equal('the last attempt failed; the message is now a dead letter');
  });

  it('records a span for a message of a recorded trace, and ends it with the message', async () => {
    const tracing = new MemoryTracing();
    const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
    world.broker.publishRaw(TOPIC, 'a', { traceparent });
    world.broker.publishRaw(TOPIC, 'b');
    world.broker.publishRaw(TOPIC, 'c', { traceparent: 'x'.repeat(10_000) });
    world.broker.publishRaw(TOPIC, 'fails', { traceparent });
    answers.set('fails', away(false));
    await run({ tracing });
    const ends = tracing.spans.map(({ name, kind, parentId, ended, error }) => [name, kind, parentId, ended, error]);
    const common = ['process seckill-order-event', 'consumer', 'b'.repeat(16), true];
    expect(ends).to.deep.equal([
      [...common, null],
      [...common, 'OperationalError: away'],
    ]);
    expect(tracing.spans[0]?.fields).to.deep.include({
      'messaging.consumer.group.name': GROUP,
      'seckill.outcome': 'done',
    });
    expect(handled).to.deep.equal(['a', 'b', 'c', 'fails']);
  });

  it('retries an early message, each time later, without delaying other messages [M6]', async () => {
    answers.set('early', () => ({ outcome: 'later', why: 'not there' }));
    world.broker.publishRaw(TOPIC, 'early');
    world.broker.publishRaw(TOPIC, 'other');
    await run();
    expect([handled, unfinished()]).to.deep.equal([['early', 'other'], 1]);
    world.clock.advance(700);
    await run();
    expect(handled).to.have.length(2);
    world.clock.advance(600);
    await run();
    expect(handled).to.deep.equal(['early', 'other', 'early']);
    world.clock.advance(3_900);
    await run();
    expect(handled).to.have.length(3);
    answers.clear();
    world.clock.advance(2_200);
    await run();
    expect([handled.length, unfinished()]).to.deep.equal([4, 0]);
  });

  it('parks an unreadable message with its origin and acks it [M7]', async () => {
    answers.set('{', () => ({ outcome: 'undecodable', detail: 'not JSON' }));
    world.broker.publishRaw(TOPIC, '{', { topic: TOPIC, saleId: '7' });
    await run();
    expect(unfinished()).to.equal(0);
    expect(world.deadLetters.deadLetters).to.have.length(1);
    expect(world.deadLetters.deadLetters[0]).to.include({
      group: GROUP,
      originTopic: TOPIC,
      saleId: '7',
      batchId: null,
      body: '{',
      reason: 'undecodable',
      detail: 'not JSON',
      attempts: 1,
    });
  });

  it('parks a message once even if its ack is lost [M8]', async () => {
    answers.set('{', () => ({ outcome: 'unknown_version', detail: 'version 2' }));
    world.broker.publishRaw(TOPIC, '{');
    world.broker.breakNext('ack_lost');
    await run();
    expect(unfinished(), 'the fault happened').to.equal(1);
    world.clock.advance(INVISIBLE_MS);
    await run();
    expect([unfinished(), world.deadLetters.deadLetters.length]).to.deep.equal([0, 1]);
  });

  it('receives nothing during a MySQL outage [D1]', async () => {
    world.broker.publishRaw(TOPIC, 'a');
    expect(await run({ ready: away(true) })).to.equal('OperationalError');
    expect(unfinished()).to.equal(1);
    let attempt = 0;
    const inner = world.broker.source(TOPIC, GROUP, INVISIBLE_MS);
    const receive = async (max: number) => {
      const deliveries = await inner.receive(max);
      attempt = deliveries[0]?.attempt ?? 0;
      return deliveries;
    };
    await run({ source: { receive } });
    expect(attempt, 'it cost no attempt').to.equal(1);
  });

  it('returns every message under way for a retry if MySQL fails [D1]', async () => {
    for (const body of ['a', 'b', 'c']) world.broker.publishRaw(TOPIC, body);
    answers.set('b', away(true));
    expect(await run()).to.equal('OperationalError');
    expect([handled, unfinished()]).to.deep.equal([['a', 'b'], 2]);
    answers.clear();
    world.clock.advance(2_000);
    expect(await run()).to.equal('done');
    expect(unfinished()).to.equal(0);
  });

  it('uses up an attempt of one message only, and logs an error, if a bug throws', async () => {
    for (const body of ['a', 'odd', 'c']) world.broker.publishRaw(TOPIC, body);
    answers.set('odd', () => {
      throw new TypeError('undefined is not a function');
    });
    expect(await run()).to.equal('done');
    expect([handled, unfinished()]).to.deep.equal([['a', 'odd', 'c'], 1]);
    expect(world.errors).to.deep.equal(['message not handled']);
    answers.clear();
    world.clock.advance(2_000);
    await run();
    expect(unfinished()).to.equal(0);
  });

  it('uses up no attempt of messages that wait behind slow messages', async () => {
    const bodies = Array.from({ length: 16 }, (_, index) => `m${index}`);
    for (const body of bodies) {
      world.broker.publishRaw(TOPIC, body);
      answers.set(body, () => {
        world.clock.advance(INVISIBLE_MS / 2);
        return { outcome: 'done' };
      });
    }
    await run();
    expect([handled, unfinished()]).to.deep.equal([bodies, 0]);
  });

  it('leaves a message to its next consumer if its turn came too late', async () => {
    for (const body of ['long', 'b', 'c']) world.broker.publishRaw(TOPIC, body);
    answers.set('long', () => {
      world.clock.advance(INVISIBLE_MS);
      return { outcome: 'done' };
    });
    expect(await run()).to.equal('done');
    expect([handled, unfinished()]).to.deep.equal([['long'], 3]);
    expect(world.warnings).to.deep.equal(['messages waited too long; the broker delivers them again']);
    answers.clear();
    await run();
    expect([handled, unfinished()]).to.deep.equal([['long', 'long', 'b', 'c'], 0]);
  });

  it('turns a poison message into a dead letter and delays no other message', async () => {
    for (const body of ['a', 'poison', 'c']) world.broker.publishRaw(TOPIC, body);
    answers.set('poison', away(false));
    expect(await run()).to.equal('done');
    expect([handled, unfinished()]).to.deep.equal([['a', 'poison', 'c'], 1]);
    for (let attempts = 0; attempts < 20; attempts++) {
      world.clock.advance(120_000);
      await run();
    }
    expect(unfinished()).to.equal(0);
    expect(world.broker.published(`%DLQ%${GROUP}`)).to.deep.equal(['poison']);
  });
});

import { expect } from 'chai';
import request from 'supertest';
import { OperationalError } from '../../../../src/core/errors.js';
import type { AuditEntry } from '../../../../src/core/ports/audit-log.js';
import type { Broker, ConsumerGroup, DiscardedHalf, Message } from '../../../../src/contract/broker.js';
import { GROUPS, TOPICS } from '../../../../src/core/topics.js';
import { BrokerViews, type OpenInspection } from '../../../../src/operate/broker/broker-views.js';
import { RocketmqInspection, type MessageInspection } from '../../../../src/operate/broker/rocketmq-inspection.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { StandInCluster, type Said } from '../../../helpers/stand-in-cluster.js';
import { bearer, FakeServices, startServer, until, type Started } from '../../http/http-harness.js';

const BROKER: Broker = {
  name: 'broker-a',
  address: '10.0.0.1:10911',
  down: null,
  version: 'V5_4_0',
  putPerSecond: 1.5,
  getPerSecond: 0,
  diskUsed: 0.4,
};
const GONE: Broker = { ...BROKER, name: 'broker-b', down: 'connect ECONNREFUSED', version: '' };
const GROUP: ConsumerGroup = { group: 'g', topic: 't', lag: 3, oldestMs: 1200, clients: 1 };
const halfOf = (parts: Partial<DiscardedHalf> = {}): DiscardedHalf => ({
  broker: 'broker-a',
  topic: TOPICS.purchase,
  key: 'batch-1',
  messageId: 'M1',
  ageMs: 7_200_000,
  checks: 720,
  saleId: '7',
  purchases: 2,
  discardedAtMs: Date.UTC(2030, 0, 1),
  resumedAtMs: null,
  offsetId: 'A0',
  ...parts,
});
const messageOf = (nth: number, body = '{}'): Message => ({
  broker: 'broker-a',
  topic: 't',
  queueId: 0,
  queueOffset: nth,
  physicalOffset: nth * 100,
  offsetId: `A${nth}`,
  bornAtMs: nth,
  storedAtMs: nth,
  deliveries: 0,
  body,
  properties: { KEYS: 'k' },
});

describe('admin: RocketMQ', () => {
  let clock: ManualClock;
  let asked: unknown[];
  let answers: { [M in keyof MessageInspection]: (...args: never[]) => unknown };
  let isBrokerDown: boolean;
  let audited: AuditEntry[];
  let server: Started;
  beforeEach(async () => {
    clock = new ManualClock();
    [asked, audited, isBrokerDown] = [[], [], false];
    answers = {
      status: () => ({
        brokers: [BROKER, GONE],
        groups: [GROUP],
        deadLetters: [{ topic: '%DLQ%g', kept: 1 }],
        halves: { open: 0, oldestMs: null, checksMost: 0, more: false },
        discarded: 0,
        producers: { t: 1 },
      }),
      groups: () => [GROUP],
      topics: () => [{ topic: 't', type: 'NORMAL', queues: 4, kept: 9, lastStoredAtMs: null }],
      halves: () => ({ open: [], more: true }),
      discarded: () => [halfOf()],
      resume: () => undefined,
      producers: () => [{ group: 't', clientId: 'c', address: '10.0.0.2:1', language: 'JAVA' }],
      consumers: () => [{ clientId: 'c', address: '10.0.0.2:1', language: 'JAVA' }],
      messagesOfKey: () => [messageOf(1)],
      messagesOfId: () => [messageOf(1)],
      browse: () => ({ messages: [messageOf(1), messageOf(2), messageOf(3)], more: false }),
    };
    const open = (onDown: (broker: Broker) => void): MessageInspection =>
      new Proxy({} as MessageInspection, {
        get:
          (_, name: keyof MessageInspection) =>
          async (...args: never[]) => {
            asked.push([name, ...args]);
            if (isBrokerDown) onDown(GONE);
            return answers[name](...args);
          },
      });
    const audit = {
      list: async () => [],
      append: async (entry: AuditEntry) => {
        audited.push(entry);
      },
    };
    server = await startServer(new FakeServices({ mq: new BrokerViews(open, clock), audit }));
  });
  afterEach(() => server.stop());

  const get = (path: string, role = 'viewer'): request.Test =>
    request(server.operatorsUrl)
      .get(`/admin/v1/mq${path}`)
      .set('authorization', bearer('ann', [role]));
  const resume = (body: object, roles = ['operator']): request.Test =>
    request(server.operatorsUrl)
      .post('/admin/v1/mq/halves/resume')
      .set('authorization', bearer('ann', roles))
      .send(body);

  it('returns the same status as the command, and names a broker that is down', async () => {
    const { body } = await get('/status').expect(200);
    expect(body.brokers).to.deep.equal([BROKER, GONE]);
    expect(body.groups).to.deep.equal([GROUP]);
  });

  it('returns a list as the command prints it, and the brokers that did not answer', async () => {
    expect((await get('/groups').expect(200)).body).to.deep.equal({ items: [GROUP], more: false, down: [] });
    isBrokerDown = true;
    clock.advance(1000);
    const down = [{ name: 'broker-b', address: '10.0.0.1:10911', down: 'connect ECONNREFUSED' }];
    expect((await get('/groups').expect(200)).body).to.deep.equal({ items: [GROUP], more: false, down });
    expect((await get('/halves').expect(200)).body).to.deep.equal({ items: [], more: true, down });
    expect((await get('/topics').expect(200)).body.items[0]).to.include({ topic: 't', kept: 9 });
    expect((await get('/producers').expect(200)).body.items[0]).to.include({ group: 't' });
    const consumers = await get(`/consumers?group=${GROUPS.writer}`).expect(200);
    expect(consumers.body.items[0]).to.include({ group: GROUPS.writer, clientId: 'c' });
    expect((await get('/halves/discarded').expect(200)).body.items).to.deep.equal([halfOf()]);
  });

  it('shares an answer between callers within a second, or three seconds if it is expensive', async () => {
    await Promise.all([get('/status'), get('/status'), get('/status')]);
    clock.advance(2999);
    await get('/status').expect(200);
    expect(asked).to.have.length(1);
    clock.advance(2);
    await get('/status').expect(200);
    expect(asked).to.have.length(2);
    await Promise.all([get('/groups'), get('/groups'), get('/groups?all=true', 'admin')]);
    expect(asked).to.have.length(4);
    expect(asked[3], 'all groups of the brokers').to.deep.equal(['groups', null]);
    clock.advance(1001);
    await get('/groups').expect(200);
    expect(asked).to.have.length(5);
  });

  it('returns the newest messages, or messages by key, id, time or offset', async () => {
    const limitsOf = (max: number): object => ({ max, bodiesMax: 4 * 1024 * 1024 });
    const found = async (query: string): Promise<unknown> => {
      const { body } = await get(`/messages?${query}`).expect(200);
      return [body.items.map(({ queueOffset }: Message) => queueOffset), body.more, asked.at(-1)];
    };
    const { purchase, redrive } = TOPICS;
    const all = [1, 2, 3];
    expect(await found('limit=2')).to.deep.equal([all, false, ['browse', purchase, null, limitsOf(2)]]);
    const from = { queueId: 0, offset: 12 };
    const ofPlace = await found(`topic=${redrive}&queue=0&offset=12&limit=2`);
    expect(ofPlace).to.deep.equal([all, false, ['browse', redrive, from, limitsOf(2)]]);
    const since = { sinceMs: Date.UTC(2030, 0, 1) };
    const ofTime = await found('since=2030-01-01T00:00:00Z');
    expect(ofTime).to.deep.equal([all, false, ['browse', purchase, since, limitsOf(20)]]);
    answers.browse = () => ({ messages: [messageOf(1)], more: true });
    expect(await found('')).to.deep.equal([[1], true, ['browse', purchase, null, limitsOf(20)]]);
    answers.messagesOfKey = () => [messageOf(1), messageOf(2)];
    expect(await found('key=k')).to.deep.equal([[1, 2], false, ['messagesOfKey', purchase, 'k']]);
    expect(await found('key=k&limit=1')).to.deep.equal([[1], true, ['messagesOfKey', purchase, 'k']]);
    expect(await found('id=M1')).to.deep.equal([[1], false, ['messagesOfId', purchase, 'M1']]);
  });

  it('limits the answer for messages of a key, whatever their size', async () => {
    const long = 'x'.repeat(2.5 * 1024 * 1024);
    answers.messagesOfKey = () => [messageOf(1, long), messageOf(2, long), messageOf(3, '{}')];
    const { body } = await get('/messages?key=k').expect(200);
    expect([body.items.map(({ queueOffset }: Message) => queueOffset), body.more]).to.deep.equal([[1], true]);
  });

  it('shows topics and half messages of other systems only to an admin', async () => {
    for (const role of ['viewer', 'operator']) {
      for (const path of ['/messages?topic=billing', '/messages?topic=%25DLQ%25billing&key=k', '/groups?all=true']) {
        expect((await get(path, role).expect(403)).body, path).to.include({ code: 'role_needed' });
      }
      expect((await get('/consumers?group=billing', role).expect(403)).body.detail).to.include('admin');
    }
    expect(asked).to.deep.equal([]);
    for (const topic of [TOPICS.orderEvent, `%DLQ%${GROUPS.writer}`, `%RETRY%${GROUPS.coupon}`]) {
      await get(`/messages?topic=${encodeURIComponent(topic)}`).expect(200);
    }
    for (const path of ['/messages?topic=billing', '/groups?all=true', '/consumers?group=billing']) {
      await get(path, 'admin').expect(200);
    }
    const ours = { ...messageOf(1), properties: { REAL_TOPIC: TOPICS.purchase } };
    const theirs = { ...messageOf(2), properties: { REAL_TOPIC: 'billing' } };
    answers.browse = () => ({ messages: [ours, theirs], more: false });
    for (const topic of ['RMQ_SYS_TRANS_HALF_TOPIC', 'TRANS_CHECK_MAX_TIME_TOPIC']) {
      expect((await get(`/messages?topic=${topic}`).expect(200)).body.items, topic).to.deep.equal([ours]);
      expect((await get(`/messages?topic=${topic}`, 'admin').expect(200)).body.items).to.have.length(2);
    }
  });

  it('names each mistake in a request [S6]', async () => {
    for (const [path, field] of [
      ['/messages?key=a&id=b', 'key'],
      ['/messages?queue=1', 'offset'],
      ['/messages?offset=1', 'offset'],
      ['/messages?limit=101', 'limit'],
      ['/messages?since=now', 'since'],
      ['/consumers', 'group'],
      ['/groups?all=yes', 'all'],
      ['/halves/discarded?limit=0', 'limit'],
    ] as const) {
      expect((await get(path).expect(400)).body.errors[0].field, path).to.equal(field);
    }
    expect(asked).to.deep.equal([]);
  });

  it('limits the number of concurrent look-ups', async () => {
    const release: (() => void)[] = [];
    const none = { messages: [], more: false };
    answers.browse = () => new Promise((resolve) => release.push(() => resolve(none)));
    const [one, other] = [get('/messages'), get('/messages?limit=1')].map((sent) => sent.then((answer) => answer));
    await until(() => release.length === 2);
    expect((await get('/messages?limit=2').expect(503)).body.code).to.equal('overloaded');
    await get('/status').expect(200);
    for (const done of release) done();
    expect([(await one)?.status, (await other)?.status]).to.deep.equal([200, 200]);
    answers.browse = () => none;
    await get('/messages').expect(200);
  });

  it('returns 503 if no name server answers, and 501 if none is configured', async () => {
    answers.topics = () => {
      throw new OperationalError('rocketmq', 'NAMESRV_ADDR 10.0.0.1:9876: connect ECONNREFUSED', { retryable: true });
    };
    const { body } = await get('/topics').expect(503);
    expect(body).to.include({ code: 'unavailable', detail: 'NAMESRV_ADDR 10.0.0.1:9876: connect ECONNREFUSED' });
    await server.stop();
    server = await startServer(new FakeServices());
    const without = await get('/status').expect(501);
    expect(without.body).to.include({ code: 'broker_not_configured' });
    expect(without.body.detail).to.include('NAMESRV_ADDR');
  });

  it('returns 503 and reports no bug if a broker refuses or stops answering', async () => {
    let says: Said = { code: 16, remark: 'the consumer group[g] is forbidden' };
    const cluster = await StandInCluster.start({ 'broker-a': () => says });
    const open: OpenInspection = (onDown) => new RocketmqInspection(cluster.namesrvAddr, null, { onDown });
    await server.stop();
    const fake = new FakeServices({ mq: new BrokerViews(open, clock) });
    server = await startServer(fake);
    try {
      for (const path of ['/status', '/groups', '/topics', '/halves', '/producers', '/messages', '/messages?key=k']) {
        const { body } = await get(path).expect(503);
        expect(body.code, path).to.equal('unavailable');
        expect(body.detail, path).to.include('the consumer group[g] is forbidden');
      }
      says = 'closes';
      expect((await get('/topics').expect(503)).body.code).to.equal('unavailable');
      expect(fake.bugs).to.deep.equal([]);
    } finally {
      cluster.close();
    }
  });

  describe('abandoned half messages', () => {
    it('are resumed, each after its entry in the audit log', async () => {
      answers.discarded = () => [halfOf(), halfOf({ messageId: 'M2', resumedAtMs: 1 }), halfOf({ topic: 'other' })];
      answers.resume = () => {
        expect(audited).to.have.length(1);
      };
      expect((await resume({ key: 'batch-1' }).expect(200)).body).to.deep.equal({ resumed: 1 });
      expect(asked).to.deep.equal([
        ['discarded', { key: 'batch-1' }],
        ['resume', halfOf()],
      ]);
      const { actor, action, subject, before } = audited[0] as AuditEntry;
      expect({ actor, action, subject, before }).to.deep.equal({
        actor: 'ann',
        action: 'half_message.resumed',
        subject: 'half_message:batch-1',
        before: { topic: TOPICS.purchase, messageId: 'M1', discardedAt: '2030-01-01T00:00:00.000Z' },
      });
    });

    it('are refused with the reason if they cannot be resumed, and not audited', async () => {
      const why = async (found: readonly DiscardedHalf[]): Promise<string> => {
        answers.discarded = () => found;
        const { body } = await resume({ key: 'batch-1' }).expect(409);
        expect(body.code).to.equal('wrong_state');
        return body.detail;
      };
      expect(await why([])).to.include('is no longer kept');
      expect(await why([halfOf({ resumedAtMs: 1 })])).to.include('was already resumed');
      expect(await why([halfOf({ ageMs: 80 * 3_600_000 })])).to.include('older than three days');
      expect(audited).to.deep.equal([]);
      await resume({ key: 'batch-1' }, ['viewer']).expect(403);
      await resume({}).expect(400);
    });
  });
});

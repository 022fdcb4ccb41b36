import { expect } from 'chai';
import request from 'supertest';
import { OperationalError } from '../../../src/core/errors.js';
import type { AuditEntry } from '../../../src/core/ports/audit-log.js';
import type {
  BrokerReport,
  DiscardedHalf,
  FoundMessage,
  GroupReport,
  MessageInspection,
} from '../../../src/core/ports/message-inspection.js';
import { TOPICS } from '../../../src/core/topics.js';
import { BrokerViews } from '../../../src/http/broker-views.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { bearer, FakeServices, startServer, until, type Started } from './http-harness.js';

const BROKER: BrokerReport = {
  name: 'broker-a',
  address: '10.0.0.1:10911',
  down: null,
  version: 'V5_4_0',
  putPerSecond: 1.5,
  getPerSecond: 0,
  diskUsed: 0.4,
};
const GONE: BrokerReport = { ...BROKER, name: 'broker-b', down: 'connect ECONNREFUSED', version: '' };
const GROUP: GroupReport = { group: 'g', topic: 't', lag: 3, oldestMs: 1200, clients: 1 };
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
const messageOf = (nth: number, body = '{}'): FoundMessage => ({
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
      browse: () => [messageOf(1), messageOf(2), messageOf(3)],
    };
    const open = (onDown: (broker: BrokerReport) => void): MessageInspection =>
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

  const get = (path: string): request.Test =>
    request(server.operatorsUrl)
      .get(`/admin/v1/mq${path}`)
      .set('authorization', bearer('ann', ['viewer']));
  const resume = (body: object, roles = ['operator']): request.Test =>
    request(server.operatorsUrl)
      .post('/admin/v1/mq/halves/resume')
      .set('authorization', bearer('ann', roles))
      .send(body);

  it('the status is that of the command; a broker that is down is named in it', async () => {
    const { body } = await get('/status').expect(200);
    expect(body.brokers).to.deep.equal([BROKER, GONE]);
    expect(body.groups).to.deep.equal([GROUP]);
  });

  it('a list has the lines of the command, and the brokers whose part is missing', async () => {
    expect((await get('/groups').expect(200)).body).to.deep.equal({ items: [GROUP], more: false, down: [] });
    isBrokerDown = true;
    clock.advance(1000);
    const down = [{ name: 'broker-b', address: '10.0.0.1:10911', down: 'connect ECONNREFUSED' }];
    expect((await get('/groups').expect(200)).body).to.deep.equal({ items: [GROUP], more: false, down });
    expect((await get('/halves').expect(200)).body).to.deep.equal({ items: [], more: true, down });
    expect((await get('/topics').expect(200)).body.items[0]).to.include({ topic: 't', kept: 9 });
    expect((await get('/producers').expect(200)).body.items[0]).to.include({ group: 't' });
    expect((await get('/consumers?group=g').expect(200)).body.items[0]).to.include({ group: 'g', clientId: 'c' });
    expect((await get('/halves/discarded').expect(200)).body.items).to.deep.equal([halfOf()]);
  });

  it('who looks within a second shares one question to the brokers', async () => {
    await Promise.all([get('/status'), get('/status'), get('/status')]);
    await get('/status').expect(200);
    expect(asked).to.have.length(1);
    clock.advance(1001);
    await get('/status').expect(200);
    expect(asked).to.have.length(2);
    await Promise.all([get('/groups'), get('/groups?all=true')]);
    expect(asked).to.have.length(4);
    expect(asked[3], 'all that the brokers know').to.deep.equal(['groups', null]);
  });

  it('messages: the newest, or of a key, an id, a time or a place; `more` where others match', async () => {
    const found = async (query: string): Promise<unknown> => {
      const { body } = await get(`/messages?${query}`).expect(200);
      return [body.items.map(({ queueOffset }: FoundMessage) => queueOffset), body.more, asked.at(-1)];
    };
    expect(await found('limit=2')).to.deep.equal([[2, 3], true, ['browse', TOPICS.purchase, null, 3]]);
    expect(await found('topic=t&limit=3')).to.deep.equal([[1, 2, 3], false, ['browse', 't', null, 4]]);
    expect(await found('topic=t&queue=0&offset=12&limit=2')).to.deep.equal([
      [1, 2],
      true,
      ['browse', 't', { queueId: 0, offset: 12 }, 3],
    ]);
    expect(await found('since=2030-01-01T00:00:00Z')).to.deep.equal([
      [1, 2, 3],
      false,
      ['browse', TOPICS.purchase, { sinceMs: Date.UTC(2030, 0, 1) }, 21],
    ]);
    expect(await found('key=k')).to.deep.equal([[1], false, ['messagesOfKey', TOPICS.purchase, 'k']]);
    expect(await found('id=M1')).to.deep.equal([[1], false, ['messagesOfId', TOPICS.purchase, 'M1']]);
  });

  it('messages: an answer is bounded, whatever their size', async () => {
    const long = 'x'.repeat(2.5 * 1024 * 1024);
    answers.browse = () => [messageOf(1, long), messageOf(2, long), messageOf(3, '{}')];
    const newest = (await get('/messages?limit=3').expect(200)).body;
    expect([newest.items.map(({ queueOffset }: FoundMessage) => queueOffset), newest.more]).to.deep.equal([
      [2, 3],
      true,
    ]);
    const first = (await get('/messages?since=2030-01-01T00:00:00Z').expect(200)).body;
    expect([first.items.map(({ queueOffset }: FoundMessage) => queueOffset), first.more]).to.deep.equal([[1], true]);
  });

  it('what is asked for wrongly is named [S6]', async () => {
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

  it('a bounded number of looks at once', async () => {
    const release: (() => void)[] = [];
    answers.browse = () => new Promise((resolve) => release.push(() => resolve([])));
    const [one, other] = [get('/messages'), get('/messages?topic=u')].map((sent) => sent.then((answer) => answer));
    await until(() => release.length === 2);
    expect((await get('/messages?topic=v').expect(503)).body.code).to.equal('overloaded');
    await get('/status').expect(200);
    for (const done of release) done();
    expect([(await one)?.status, (await other)?.status]).to.deep.equal([200, 200]);
    answers.browse = () => [];
    await get('/messages').expect(200);
  });

  it('no name server answers: 503 with its sentence; none is known: 501', async () => {
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

  describe('half messages that were given up', () => {
    it('are resumed, each in the audit log before the broker is asked', async () => {
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

    it('nothing to resume is said, and nothing is audited', async () => {
      const why = async (found: readonly DiscardedHalf[]): Promise<string> => {
        answers.discarded = () => found;
        const { body } = await resume({ key: 'batch-1' }).expect(409);
        expect(body.code).to.equal('wrong_state');
        return body.detail;
      };
      expect(await why([])).to.include('not among those that are kept');
      expect(await why([halfOf({ resumedAtMs: 1 })])).to.include('was resumed before');
      expect(await why([halfOf({ ageMs: 80 * 3_600_000 })])).to.include('older than three days');
      expect(audited).to.deep.equal([]);
      await resume({ key: 'batch-1' }, ['viewer']).expect(403);
      await resume({}).expect(400);
    });
  });
});

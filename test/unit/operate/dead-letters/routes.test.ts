import { expect } from 'chai';
import request from 'supertest';
import type { Order } from '../../../../src/core/order.js';
import type { DeadLetterServices } from '../../../../src/operate/dead-letters/services.js';
import type { DiscardAnswer } from '../../../../src/operate/dead-letters/discard-dead-letter.js';
import type { ReplayAnswer } from '../../../../src/operate/dead-letters/replay-dead-letter.js';
import type { StoredDeadLetter } from '../../../../src/operate/dead-letters/dead-letter-store.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { storedDeadLetter } from '../../../helpers/memory/memory-dead-letters.js';
import { bearer, FakeServices, ORDER, startServer, type Started } from '../../http/http-harness.js';

const AT_MS = Date.UTC(2030, 0, 1);
const BATCH = batchOf({ saleId: '7' }, purchasesOf('u1*2'), 'batch-1');
const DEAD_LETTER = storedDeadLetter({
  replays: 1,
  body: BATCH.body,
  parkedAtMs: AT_MS,
  replayStartedAtMs: AT_MS + 1000,
});
const { body: _body, parkedAtMs: _parkedAtMs, replayStartedAtMs: _startedAtMs, ...SHARED } = DEAD_LETTER;
const SUMMARY = { ...SHARED, parkedAt: '2030-01-01T00:00:00.000Z', replayStartedAt: '2030-01-01T00:00:01.000Z' };
const WITH_BODY = { ...SUMMARY, batch: JSON.parse(BATCH.body), body: BATCH.body };

describe('admin dead letters', () => {
  let fake: FakeServices;
  let server: Started;
  let calls: unknown[];
  let found: StoredDeadLetter[];
  let replayed: ReplayAnswer;
  let discarded: DiscardAnswer;
  /** Orders of the purchases in a dead letter. */
  let rows: Order[];
  const admin = bearer('boss', ['admin']);

  beforeEach(async () => {
    calls = [];
    found = [DEAD_LETTER];
    rows = [];
    replayed = { outcome: 'replayed', note: 'recorded' };
    discarded = { outcome: 'discarded', note: '1 failed' };
    const deadLetters: DeadLetterServices['deadLetters'] = {
      ...new FakeServices().services.deadLetters,
      ordersOf: async ({ purchases }) => purchases.map((_, index) => rows[index] ?? null),
      async *matching(filter, max) {
        calls.push(['matching', filter, max]);
        yield* found;
      },
      list: async (filter, page) => {
        calls.push(['list', filter, page]);
        return found.map(({ body: _body, ...summary }) => summary);
      },
      find: async (deadLetterId) => found.find((deadLetter) => deadLetter.deadLetterId === deadLetterId) ?? null,
      replay: async (deadLetterId, { actor }) => {
        calls.push(['replay', deadLetterId, actor]);
        return replayed;
      },
      discard: async (deadLetterId, actor) => {
        calls.push(['discard', deadLetterId, actor]);
        return discarded;
      },
    };
    fake = new FakeServices({ deadLetters });
    server = await startServer(fake);
  });
  afterEach(async () => {
    await server.stop();
    expect(fake.bugs, 'no input of a client is reported as a bug').to.deep.equal([]);
  });

  const get = (path: string): request.Test =>
    request(server.operatorsUrl).get(`/admin/v1/dead-letters${path}`).set('authorization', admin);
  const post = (path: string): request.Test =>
    request(server.operatorsUrl).post(`/admin/v1/dead-letters${path}`).set('authorization', admin);

  it('lists a page without bodies, and the start of a next page', async () => {
    expect((await get('').expect(200)).body).to.deep.equal({ deadLetters: [SUMMARY], next: null });
    expect((await get('?limit=1').expect(200)).body.next).to.equal('17');
    expect(calls).to.deep.equal([
      ['list', {}, { max: 50 }],
      ['list', {}, { max: 1 }],
    ]);
  });

  it('reads each filter', async () => {
    await get(
      '?group=g&saleId=7&key=k-1&reason=undecodable&state=parked&since=2030-01-01T00:00:00Z' +
        '&until=2030-01-01T02:00:00%2B01:00&topic=t&text=a%20b&after=16&limit=200',
    ).expect(200);
    const times = { sinceMs: AT_MS, untilMs: AT_MS + 3_600_000 };
    const names = { group: 'g', saleId: '7', key: 'k-1', reason: 'undecodable', text: 'a b', originTopic: 't' };
    const filter = { ...names, state: 'parked', ...times };
    expect(calls).to.deep.equal([['list', filter, { afterId: '16', max: 200 }]]);
  });

  it('returns 400 and names the filter if it is wrong [S6]', async () => {
    const wrong: Record<string, string[]> = {
      saleId: ['x', '0'],
      key: ['a b', ''],
      reason: ['x'],
      state: ['gone'],
      since: ['yesterday', '7'],
      until: [''],
      after: ['x', '-1'],
      limit: ['0', '201', 'x', '1.5', ''],
      colour: ['red'],
    };
    for (const [field, values] of Object.entries(wrong)) {
      for (const value of values) {
        const { body } = await get(`?${field}=${encodeURIComponent(value)}`).expect(400);
        expect([body.code, body.errors[0].field], `${field}=${value}`).to.deep.equal(['bad_request', field]);
      }
    }
    await get('?state=parked&state=replayed').expect(400);
    expect(calls).to.deep.equal([]);
  });

  it('returns one dead letter with its body, decoded if it is a batch', async () => {
    const { body } = await get('/17').expect(200);
    const orders = [{ userId: 'u1', requestId: 'k1', quantity: 2, order: null }];
    expect(body).to.deep.equal({ ...WITH_BODY, orders });
    found = [{ ...DEAD_LETTER, body: '{' }];
    expect((await get('/17').expect(200)).body).to.include({ batch: null, body: '{', orders: null });
    expect((await get('/18').expect(404)).body.code).to.equal('dead_letter_not_found');
    await get('/x').expect(400);
  });

  it('returns the order of each purchase, and trusts nothing in a forged dead letter', async () => {
    rows = [{ ...ORDER, state: 'paid' }];
    const { body } = await get('/17').expect(200);
    const order = { orderId: '99', batchId: 'b1', quantity: 2, state: 'paid', reason: null };
    expect(body.orders).to.deep.equal([{ userId: 'u1', requestId: 'k1', quantity: 2, order }]);
    found = [{ ...DEAD_LETTER, reason: 'forged' }];
    expect((await get('/17').expect(200)).body.orders).to.equal(null);
  });

  it('exports all matches with their bodies as CSV or JSON lines', async () => {
    found = [DEAD_LETTER, { ...DEAD_LETTER, deadLetterId: '18', detail: '=1+1', body: '{' }];
    const csv = await get('/export?state=parked').expect(200);
    expect(csv.headers['content-type']).to.match(/^text\/csv/);
    expect(csv.headers['content-disposition']).to.equal('attachment; filename="dead-letters.csv"');
    const [heading, one, other, end] = csv.text.split('\n');
    expect(heading).to.match(/^\ufeffdeadLetterId,parkedAt,state,reason,detail,.*,body$/);
    expect(one).to.match(/^17,2030-01-01T00:00:00.000Z,parked,retries_exhausted,given up,/);
    expect(other).to.include(",'=1+1,");
    expect(end).to.equal('');
    const lines = await get('/export?format=jsonl').buffer(true).expect(200);
    expect(JSON.parse(lines.text.split('\n')[0] ?? '')).to.deep.equal(WITH_BODY);
    expect(calls).to.deep.equal([
      ['matching', { state: 'parked' }, 1_000_000_000],
      ['matching', {}, 1_000_000_000],
    ]);
  });

  it('replays or discards in the name of the admin and returns the dead letter', async () => {
    const replay = await post('/17/replay').expect(200);
    expect(replay.body).to.deep.equal({ outcome: 'replayed', deadLetter: WITH_BODY });
    expect((await post('/17/discard').expect(200)).body.outcome).to.equal('discarded');
    expect(calls).to.deep.equal([
      ['replay', '17', 'boss'],
      ['discard', '17', 'boss'],
    ]);
    await post('/x/replay').expect(400);
    await post('/0/discard').expect(400);
  });

  it('maps each result of a replay to its status', async () => {
    const rows: [ReplayAnswer, number, string][] = [
      [{ outcome: 'already_recorded', note: 'n' }, 200, 'already_recorded'],
      [{ outcome: 'unfinished', note: 'n' }, 202, 'unfinished'],
      [{ outcome: 'unreadable', note: 'no batch' }, 409, 'not_replayable'],
      [{ outcome: 'not_held', note: 'not held' }, 409, 'not_replayable'],
      [{ outcome: 'forged', note: 'forged' }, 409, 'not_replayable'],
      [{ outcome: 'already_closed', state: 'replayed' }, 200, 'already_closed'],
      [{ outcome: 'already_closed', state: 'discarded' }, 409, 'wrong_state'],
      [{ outcome: 'not_found' }, 404, 'dead_letter_not_found'],
    ];
    for (const [answer, status, word] of rows) {
      replayed = answer;
      const { body } = await post('/17/replay').expect(status);
      expect(body.outcome ?? body.code).to.equal(word);
    }
    replayed = { outcome: 'not_held', note: 'its units are not held (unknown)' };
    expect((await post('/17/replay')).body.detail).to.contain('not held (unknown)');
  });

  it('maps each result of a discard to its status', async () => {
    const rows: [DiscardAnswer, number, string][] = [
      [{ outcome: 'contended' }, 503, 'unavailable'],
      [{ outcome: 'already_closed', state: 'discarded' }, 200, 'already_closed'],
      [{ outcome: 'already_closed', state: 'replayed' }, 409, 'wrong_state'],
      [{ outcome: 'not_found' }, 404, 'dead_letter_not_found'],
    ];
    for (const [answer, status, word] of rows) {
      discarded = answer;
      const { body } = await post('/17/discard').expect(status);
      expect(body.outcome ?? body.code).to.equal(word);
    }
  });
});

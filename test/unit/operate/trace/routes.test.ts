import { expect } from 'chai';
import request from 'supertest';
import type { TraceQuery } from '../../../../src/operate/trace/evidence.js';
import type { TraceAnswer } from '../../../../src/operate/trace/trace-purchase.js';
import { bearer, FakeServices, startServer, until, type Started } from '../../http/http-harness.js';
import { partial } from '../../../helpers/partial.js';

const FOUND: TraceAnswer = {
  outcome: 'found',
  more: true,
  traces: [
    {
      request: { userId: 'u1', saleId: '7', requestId: 'k1' },
      traceId: '0af7651916cd43dd8448eb211c80319c',
      standing: { state: 'paid', sentence: 'It is paid.' },
      steps: [
        { atMs: Date.UTC(2030, 0, 1), source: 'mysql', what: 'paid', detail: 'order 42' },
        { atMs: null, source: 'redis', what: 'request', detail: 'none' },
      ],
      timeline: [
        { stage: 'payment', state: 'done', atMs: Date.UTC(2030, 0, 1), dueAtMs: null, text: 'paid' },
        { stage: 'notification', state: 'waiting', atMs: null, dueAtMs: Date.UTC(2030, 0, 2), text: 'soon' },
      ],
    },
  ],
};

describe('admin trace', () => {
  let server: Started;
  let fake: FakeServices;
  let asked: TraceQuery[];
  let answer: TraceAnswer;
  let look: (signal: AbortSignal) => Promise<TraceAnswer>;

  beforeEach(async () => {
    asked = [];
    answer = FOUND;
    look = async () => answer;
    const trace = (query: TraceQuery, signal?: AbortSignal): Promise<TraceAnswer> => {
      asked.push(query);
      return look(signal as AbortSignal);
    };
    fake = new FakeServices({ trace: partial({ trace }) });
    server = await startServer(fake);
  });
  afterEach(() => server.stop());

  const get = (path: string, who = 'boss'): request.Test =>
    request(server.operatorsUrl)
      .get(`/admin/v1/requests/${path}`)
      .set('authorization', bearer(who, ['admin']));

  it('returns the steps and the sentence, and passes filters on', async () => {
    const { body } = await get('k1?saleId=7&userId=u1').expect(200);
    expect(asked).to.deep.equal([{ id: 'k1', saleId: '7', userId: 'u1' }]);
    expect(body).to.deep.equal({
      more: true,
      purchases: [
        {
          userId: 'u1',
          saleId: '7',
          requestId: 'k1',
          traceId: '0af7651916cd43dd8448eb211c80319c',
          state: 'paid',
          sentence: 'It is paid.',
          nextAt: '2030-01-02T00:00:00.000Z',
          timeline: [
            { stage: 'payment', state: 'done', at: '2030-01-01T00:00:00.000Z', dueAt: null, text: 'paid' },
            { stage: 'notification', state: 'waiting', at: null, dueAt: '2030-01-02T00:00:00.000Z', text: 'soon' },
          ],
          steps: [
            { at: '2030-01-01T00:00:00.000Z', source: 'mysql', what: 'paid', detail: 'order 42' },
            { at: null, source: 'redis', what: 'request', detail: 'none' },
          ],
        },
      ],
    });
  });

  it('returns 404 with the reason if no store has the purchase', async () => {
    answer = { outcome: 'not_found', why: 'Nobody knows it.' };
    const { body } = await get('k1').expect(404);
    expect([body.code, body.detail]).to.deep.equal(['purchase_not_found', 'Nobody knows it.']);
  });

  it('returns 400 for wrong ids [S6]', async () => {
    for (const path of ['a%20b', 'k1?saleId=x', 'k1?userId=a%20b', 'k1?who=1', 'k1?userId=a&userId=b']) {
      expect((await get(path).expect(400)).body.code).to.equal('bad_request');
    }
    expect(asked).to.deep.equal([]);
  });

  describe('limit of concurrent searches', () => {
    let release: (() => void)[];
    let signals: AbortSignal[];
    beforeEach(() => {
      [release, signals] = [[], []];
      look = (signal) => {
        signals.push(signal);
        return new Promise((resolve, reject) => {
          release.push(() => resolve(FOUND));
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        });
      };
    });
    /** Sends the requests and waits until all are running. */
    const begin = async (...whos: string[]): Promise<Promise<request.Response>[]> => {
      const sent = whos.map((who) => get('k1', who).then((response) => response));
      await until(() => release.length === whos.length);
      return sent;
    };

    it('allows two searches per operator, so that others have a place', async () => {
      const sent = await begin('ann', 'ann');
      expect((await get('k1', 'ann').expect(503)).body.code).to.equal('overloaded');
      const other = get('k1', 'bob').then((response) => response);
      await until(() => release.length === 3);
      for (const done of release) done();
      for (const { status } of await Promise.all([...sent, other])) expect(status).to.equal(200);
      look = async () => FOUND;
      await get('k1', 'ann').expect(200);
    });

    it('allows four searches in total', async () => {
      const sent = await begin('ann', 'ann', 'bob', 'bob');
      expect((await get('k1', 'cid').expect(503)).body.code).to.equal('overloaded');
      for (const done of release) done();
      for (const { status } of await Promise.all(sent)) expect(status).to.equal(200);
    });

    it('ends the search and frees the place when the client leaves', async () => {
      for (let nth = 1; nth <= 3; nth++) {
        const gone = new AbortController();
        const headers = { authorization: bearer('ann', ['viewer']) };
        const sent = fetch(`${server.operatorsUrl}/admin/v1/requests/k1`, { headers, signal: gone.signal });
        await until(() => signals.length === nth);
        gone.abort();
        await sent.catch(() => undefined);
        await until(() => signals.every(({ aborted }) => aborted));
      }
      expect(fake.bugs).to.deep.equal([]);
    });
  });
});

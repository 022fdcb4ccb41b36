import { expect } from 'chai';
import type { RequestListener } from 'node:http';
import request from 'supertest';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale, SaleSnapshot } from '../../../src/core/sale.js';
import type { QueueAnswer, TicketAnswer } from '../../../src/admission/queue/waiting-rooms.js';
import type { TokenAnswer } from '../../../src/admission/sign/purchase-tokens.js';
import { newLifecycle } from '../../../src/http/answer.js';
import { createBuyersListener } from '../../../src/http/app.js';
import type { HttpServices } from '../../../src/http/services.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { saleOf } from '../../helpers/sales.js';
import { bearer, FakeServices } from './http-harness.js';
import { partial } from '../../helpers/partial.js';

const WAITING: QueueAnswer = {
  outcome: 'waiting',
  ticket: 'k1.2.5.MAC-_',
  priority: 'P2',
  position: 4,
  estimateMs: 3000,
  pollMs: 2000,
};

describe('queue and purchase tokens over HTTP', () => {
  let fake: FakeServices;
  let clock: ManualClock;
  let asked: string[];
  let snapshot: SaleSnapshot;
  let answer: QueueAnswer;
  let ofTicket: TicketAnswer | null;
  let issued: TokenAnswer | OperationalError;
  let app: RequestListener;

  beforeEach(() => {
    clock = new ManualClock();
    asked = [];
    snapshot = { snapshot: 'ready', sale: saleOf({ saleId: '7' }, clock.nowMs()) };
    answer = WAITING;
    ofTicket = null;
    const snapshots = { get: (): Promise<SaleSnapshot> => Promise.resolve(snapshot), peek: () => snapshot };
    const note = async (...words: string[]): Promise<QueueAnswer> => {
      asked.push(words.join(' '));
      return answer;
    };
    const rooms = {
      isFor: () => true,
      join: ({ saleId }: { saleId: string }, who: { userId: string; roles: readonly string[] }) =>
        note('join', saleId, who.userId, ...who.roles),
      read: async ({ saleId }: { saleId: string }, { userId }: { userId: string }, ticket: string) =>
        ofTicket ?? note('read', saleId, userId, ticket),
      end: (saleId: string) => void note('end', saleId),
    };
    const issue: HttpServices['tokens']['issue'] = async ({ saleId }, { userId }) => {
      asked.push(`issue ${saleId} ${userId}`);
      if (issued instanceof OperationalError) throw issued;
      return issued;
    };
    const tokens = { areIssued: () => true, begin: () => null, open: () => null, redeem: async () => null, issue };
    fake = new FakeServices({ rooms: partial(rooms), snapshots: partial(snapshots), clock, tokens: partial(tokens) });
    app = createBuyersListener(fake.api, newLifecycle());
  });

  const join = (path = '/v1/sales/7/queue'): request.Test =>
    request(app)
      .post(path)
      .set('authorization', bearer('u1', ['queue-p1']));
  const poll = (ticket = 'k1.2.5.MAC-_'): request.Test =>
    request(app).get(`/v1/sales/7/queue/${ticket}`).set('authorization', bearer('u1'));
  const fetchToken = (path = '/v1/sales/7/purchase-token'): request.Test =>
    request(app).post(path).set('authorization', bearer('u1'));

  it('returns 202 with ticket, place, estimate and Location while a buyer waits', async () => {
    const { body, headers } = await join().expect(202);
    expect(body).to.deep.equal({
      status: 'waiting',
      ticket: 'k1.2.5.MAC-_',
      priority: 'P2',
      position: 4,
      estimateMs: 3000,
      pollAfterMs: 2000,
    });
    expect(headers).to.include({ location: '/v1/sales/7/queue/k1.2.5.MAC-_', 'cache-control': 'no-store' });
    expect(asked).to.deep.equal(['join 7 u1 queue-p1']);
    expect(fake.counted).to.deep.equal(['queue waiting']);
  });

  it('returns the place of the ticket in the address, for the buyer in the token', async () => {
    const { body } = await poll().expect(200);
    expect(body).to.include({ status: 'waiting', position: 4 });
    expect(asked).to.deep.equal(['read 7 u1 k1.2.5.MAC-_']);
  });

  it('returns the pass on admission, and no_queue if the sale has no queue', async () => {
    answer = { outcome: 'admitted', pass: 'k1.9.MAC', untilMs: Date.UTC(2030, 0, 1) };
    expect((await poll().expect(200)).body).to.deep.equal({
      status: 'admitted',
      pass: 'k1.9.MAC',
      passEndsAt: '2030-01-01T00:00:00.000Z',
    });
    answer = { outcome: 'no_queue' };
    expect((await join().expect(200)).body).to.deep.equal({ status: 'no_queue' });
  });

  for (const [outcome, status] of [
    ['sold_out', 409],
    ['overloaded', 503],
  ] as const) {
    it(`answers ${outcome} with ${status}`, async () => {
      answer = { outcome };
      expect((await join().expect(status)).body).to.include({ code: outcome });
      expect((await poll().expect(status)).body).to.include({ code: outcome });
    });
  }

  it('returns 404 for ticket_not_found', async () => {
    ofTicket = { outcome: 'ticket_not_found' };
    expect((await poll().expect(404)).body).to.include({ code: 'ticket_not_found' });
  });

  it('returns 409 and ends the room once the sale is closed by hand or by time', async () => {
    const { sale } = snapshot as { sale: Sale };
    for (const parts of [{ state: 'closed' }, { closesAtMs: clock.nowMs() }] as Partial<Sale>[]) {
      asked.length = 0;
      snapshot = { snapshot: 'ready', sale: { ...sale, ...parts } };
      expect((await join().expect(409)).body).to.include({ code: 'closed' });
      expect(asked).to.deep.equal(['end 7']);
    }
  });

  it('refuses a caller without a token, and an unknown or malformed sale id', async () => {
    await request(app).post('/v1/sales/7/queue').expect(401);
    await request(app).get('/v1/sales/7/queue/x').expect(401);
    await request(app).post('/v1/sales/7/purchase-token').expect(401);
    await join('/v1/sales/x7/queue').expect(400);
    await fetchToken('/v1/sales/x7/purchase-token').expect(400);
    snapshot = { snapshot: 'not_found' };
    await join().expect(404);
    snapshot = { snapshot: 'loading' };
    await poll().expect(503);
    await fetchToken().expect(503);
    expect(asked).to.deep.equal([]);
  });

  it('returns 405 for other methods', async () => {
    await request(app).get('/v1/sales/7/queue').expect(405).expect('allow', 'POST');
    await request(app).post('/v1/sales/7/queue/x').expect(405).expect('allow', 'GET, HEAD');
    await request(app).get('/v1/sales/7/purchase-token').expect(405).expect('allow', 'POST');
  });

  it('has no room and no tokens for an announced sale, and says when to return', async () => {
    const sale = saleOf({ saleId: '7', state: 'draft', warmBeforeMs: 60_000, opensAtMs: clock.nowMs() + 90_000 });
    snapshot = { snapshot: 'announced', sale: { ...sale, closesAtMs: sale.opensAtMs + 1000 } };
    for (const asking of [() => join(), () => fetchToken()]) {
      const { body } = await asking().expect(409);
      expect(body).to.include({ code: 'not_open', opensAt: new Date(sale.opensAtMs).toISOString() });
      expect(body.retryAfterMs, 'once the keeper has warmed it').to.be.within(31_000, 32_000);
    }
    clock.step(90_000);
    const late = (await join().expect(409)).body;
    expect(late).to.include({ code: 'not_open' }).and.not.have.property('opensAt');
    expect(late.retryAfterMs).to.be.within(1000, 2000);
    clock.step(1000);
    expect((await join().expect(409)).body).to.include({ code: 'closed' });
    expect(asked).to.deep.equal([]);
  });

  it('issues a token with its end, or null if the sale needs no token', async () => {
    issued = { outcome: 'issued', token: 'k1.9.MAC', untilMs: Date.UTC(2030, 0, 1) };
    expect((await fetchToken().expect(200)).body).to.deep.equal({
      token: 'k1.9.MAC',
      endsAt: '2030-01-01T00:00:00.000Z',
    });
    issued = { outcome: 'not_needed' };
    expect((await fetchToken().expect(200)).body).to.deep.equal({ token: null, endsAt: null });
    expect(asked).to.deep.equal(['issue 7 u1', 'issue 7 u1']);
    expect(fake.counted).to.deep.equal(['purchase_token issued', 'purchase_token not_needed']);
  });

  for (const [outcome, status] of [
    ['not_open', 409],
    ['closed', 409],
    ['token_limit_reached', 409],
  ] as const) {
    it(`issues no token and answers ${outcome} with ${status}`, async () => {
      issued = { outcome };
      expect((await fetchToken().expect(status)).body).to.include({ code: outcome });
    });
  }

  for (const [outcome, status] of [
    ['tokens_gone', 409],
    ['rate_limited', 429],
  ] as const) {
    it(`answers ${outcome} with ${status} and the time of the next free token`, async () => {
      issued = { outcome, retryAfterMs: 1500 };
      const { body, headers } = await fetchToken().expect(status);
      expect(body).to.include({ code: outcome, retryable: true, retryAfterMs: 1500 });
      expect(headers['retry-after']).to.equal('2');
    });
  }

  it('issues no token for a sale closed by hand, even while its window is open', async () => {
    snapshot = { snapshot: 'ready', sale: saleOf({ saleId: '7', state: 'closed' }, clock.nowMs()) };
    issued = { outcome: 'issued', token: 'k1.9.MAC', untilMs: Date.UTC(2030, 0, 1) };
    expect((await fetchToken().expect(409)).body).to.include({ code: 'closed' });
    expect(asked).to.deep.equal([]);
  });
});

import { expect } from 'chai';
import request from 'supertest';
import type { BreakerStanding } from '../../../src/admission/breaker/shared-breakers.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { AnswerCounts } from '../../../src/core/ports/answer-history.js';
import type { ApiServices } from '../../../src/programs/routes.js';
import type { OrderedRepair } from '../../../src/recovery/repair/repair-jobs.js';
import type { Bucket } from '../../../src/contract/sales.js';
import { saleOf } from '../../helpers/sales.js';
import { bearer, FakeServices, startServer, type Started } from './http-harness.js';
import { partial } from '../../helpers/partial.js';

const NOW_MS = Date.UTC(2030, 0, 1, 12);
const HOUR_MS = 3_600_000;
const SALE = saleOf({ saleId: '7', opensAtMs: NOW_MS - HOUR_MS, closesAtMs: NOW_MS + HOUR_MS }, NOW_MS);
const away = (): never => {
  throw new OperationalError('redis', 'redis is away', { retryable: true });
};

describe('console data', () => {
  let server: Started;
  let fake: FakeServices;
  const serve = async (services: Partial<ApiServices>): Promise<void> => {
    const known = { show: async (saleId: string) => (saleId === '7' ? SALE : null) };
    fake = new FakeServices();
    fake = new FakeServices({ sales: partial({ ...fake.services.sales, ...known }), ...services });
    fake.nowMs = () => NOW_MS;
    server = await startServer(fake);
  };
  afterEach(async () => {
    await server.stop();
    expect(fake.bugs).to.deep.equal([]);
  });
  const get = (path: string, roles = ['viewer']): request.Test =>
    request(server.operatorsUrl).get(`/admin/v1${path}`).set('authorization', bearer('ann', roles));
  const post = (path: string, body?: object, roles = ['operator']): request.Test => {
    const sent = request(server.operatorsUrl).post(`/admin/v1${path}`).set('authorization', bearer('ann', roles));
    return body === undefined ? sent : sent.send(body);
  };

  describe('current user', () => {
    it('returns the highest role of the token and its expiry', async () => {
      await serve({});
      fake.nowMs = () => Date.now();
      const { body } = await get('/me', ['queue-p0', 'viewer', 'operator']).expect(200);
      const { expiresAtMs, ...me } = body;
      expect(me).to.deep.equal({ userId: 'ann', roles: ['queue-p0', 'viewer', 'operator'], role: 'operator' });
      expect(expiresAtMs).to.be.within(Date.now() + HOUR_MS - 60_000, Date.now() + HOUR_MS + 1000);
      expect((await get('/me', ['admin']).expect(200)).body.role).to.equal('admin');
      expect((await get('/me', []).expect(403)).body.code).to.equal('role_needed');
    });
  });

  describe('breakers', () => {
    const shared = (dependency: BreakerStanding['dependency'], state: BreakerStanding['state']): BreakerStanding => ({
      dependency,
      state,
      sinceMs: null,
      processId: null,
    });

    it('shows the shared state, and the states of single APIs by host and process id', async () => {
      const standings: BreakerStanding[] = [
        shared('redis', 'closed'),
        shared('rocketmq', 'open'),
        { dependency: 'rocketmq', state: 'half_open', sinceMs: NOW_MS + 0.4, processId: 'p1' },
        { dependency: 'rocketmq', state: 'open', sinceMs: NOW_MS, processId: 'p2' },
      ];
      const report = { processId: 'p1', host: 'shop-1', pid: 7, version: 1, refused: null, canary: null };
      await serve({
        breakers: partial({ mode: 'on', standings }),
        ruleReports: partial({ live: async () => [report] }),
      });
      expect((await get('/breakers').expect(200)).body).to.deep.equal({
        mode: 'on',
        breakers: [
          { name: 'redis', state: 'closed', sinceMs: null, by: 'shared' },
          { name: 'rocketmq', state: 'open', sinceMs: null, by: 'shared' },
          { name: 'rocketmq', state: 'half_open', sinceMs: NOW_MS, by: 'shop-1:7' },
          { name: 'rocketmq', state: 'open', sinceMs: NOW_MS, by: 'p2' },
        ],
      });
    });

    it('shows breakers even while Redis is down, when operators need them most', async () => {
      const own: BreakerStanding = { dependency: 'redis', state: 'open', sinceMs: NOW_MS, processId: 'p1' };
      await serve({
        breakers: partial({ mode: 'on', standings: [own] }),
        ruleReports: partial({ live: async () => away() }),
      });
      expect((await get('/breakers').expect(200)).body.breakers[0].by).to.equal('p1');
    });
  });

  describe('sale by second', () => {
    let asked: unknown[];
    let landed: Map<number, number>;
    let heard: Map<number, AnswerCounts | null>;
    let readToMs: number | null;
    const seconds = (): ApiServices['saleSeconds'] => ({
      keptMs: HOUR_MS,
      landed: partial({
        bySecond: async (saleId, fromMs, toMs) => {
          asked.push([saleId, fromMs - NOW_MS, toMs - NOW_MS]);
          return { seconds: landed, readToMs: readToMs ?? toMs };
        },
      }),
      answers: partial({
        read: async (saleId, fromMs, toMs) => {
          asked.push([saleId, fromMs - NOW_MS, toMs - NOW_MS]);
          return heard;
        },
      }),
    });
    beforeEach(() => {
      [asked, landed, heard, readToMs] = [[], new Map(), new Map(), null];
    });

    it('returns accepted, refused and written purchases of each second, and skips quiet seconds', async () => {
      landed = new Map([
        [NOW_MS - 9000, 3],
        [NOW_MS - 8000, 4],
      ]);
      heard = new Map<number, AnswerCounts>([
        [NOW_MS - 9000, { accepted: 5, replayed: 1, sold_out: 9 }],
        [NOW_MS - 7000, { sold_out: 2 }],
      ]);
      await serve({ saleSeconds: seconds() });
      const { body } = await get('/sales/7/seconds').expect(200);
      expect(body).to.deep.equal({
        saleId: '7',
        fromMs: NOW_MS - HOUR_MS,
        toMs: NOW_MS,
        seconds: [
          { atMs: NOW_MS - 9000, won: 5, landed: 3, refused: { sold_out: 9 } },
          { atMs: NOW_MS - 8000, won: 0, landed: 4, refused: {} },
          { atMs: NOW_MS - 7000, won: 0, landed: 0, refused: { sold_out: 2 } },
        ],
      });
      expect(asked).to.deep.equal([
        ['7', -HOUR_MS, 0],
        ['7', -HOUR_MS, 0],
      ]);
    });

    it('returns at most an hour, and says where reading ended early', async () => {
      readToMs = NOW_MS - HOUR_MS;
      await serve({ saleSeconds: seconds() });
      const { body } = await get('/sales/7/seconds?from=2030-01-01T09:00:00.900Z&to=2030-01-01T12:00:00Z').expect(200);
      expect(body).to.deep.include({ fromMs: NOW_MS - 3 * HOUR_MS, toMs: NOW_MS - HOUR_MS });
      expect(asked[0]).to.deep.equal(['7', -3 * HOUR_MS, -2 * HOUR_MS]);
      await get('/sales/7/seconds?from=2030-01-01T11:59:59.100Z&to=2030-01-01T11:59:59.200Z').expect(200);
      expect(asked[2]).to.deep.equal(['7', -1000, 0]);
      await get('/sales/7/seconds?from=2030-01-01T12:00:00Z&to=2030-01-01T11:00:00Z').expect(400);
      expect((await get('/sales/8/seconds').expect(404)).body.code).to.equal('not_found');
    });

    it('returns null, not 0, for a value that was not stored', async () => {
      landed = new Map([
        [NOW_MS - HOUR_MS - 1000, 1],
        [NOW_MS - HOUR_MS + 1000, 2],
      ]);
      await serve({ saleSeconds: seconds() });
      const path = '/sales/7/seconds?from=2030-01-01T10:30:00Z';
      expect((await get(path).expect(200)).body.seconds).to.deep.equal([
        { atMs: NOW_MS - HOUR_MS - 1000, won: null, landed: 1, refused: null },
        { atMs: NOW_MS - HOUR_MS + 1000, won: 0, landed: 2, refused: {} },
      ]);
    });

    it('returns null, not 0, for a value that may belong to other sales too', async () => {
      landed = new Map([[NOW_MS - 9000, 400]]);
      heard = new Map([
        [NOW_MS - 9000, null],
        [NOW_MS - 8000, null],
        [NOW_MS - 7000, { accepted: 3 }],
      ]);
      await serve({ saleSeconds: seconds() });
      expect((await get('/sales/7/seconds').expect(200)).body.seconds).to.deep.equal([
        { atMs: NOW_MS - 9000, won: null, landed: 400, refused: null },
        { atMs: NOW_MS - 8000, won: null, landed: 0, refused: null },
        { atMs: NOW_MS - 7000, won: 3, landed: 0, refused: {} },
      ]);
    });

    it('returns written orders from MySQL while Redis is down', async () => {
      landed = new Map([[NOW_MS - 1000, 2]]);
      await serve({ saleSeconds: { ...seconds(), answers: partial({ read: async () => away() }) } });
      expect((await get('/sales/7/seconds').expect(200)).body.seconds).to.deep.equal([
        { atMs: NOW_MS - 1000, won: null, landed: 2, refused: null },
      ]);
    });
  });

  describe('buckets of a sale', () => {
    it('returns each bucket as stored in Redis', async () => {
      const bucket: Bucket = {
        bucket: 0,
        state: 'open',
        epoch: 3,
        sameServer: true,
        unitsLeft: 4,
        pending: 1,
        pendingOldestMs: 12,
        error: null,
      };
      const lost = { bucket: 1, state: null, epoch: null, sameServer: null, unitsLeft: null };
      const other: Bucket = { ...lost, pending: null, pendingOldestMs: null, error: 'redis: no answer' };
      await serve({ bucketsOf: async ({ saleId }) => (saleId === '7' ? [bucket, other] : []) });
      expect((await get('/sales/7/buckets').expect(200)).body).to.deep.equal({ saleId: '7', buckets: [bucket, other] });
      await get('/sales/8/buckets').expect(404);
    });
  });

  describe('repair of a sale', () => {
    it('runs in the name of the operator, with or without force', async () => {
      const asked: unknown[] = [];
      const facts = { epoch: 4, unitsLeft: 9, rows: 5, held: 1, ordersLost: 0, tookMs: 812.5 };
      let end: OrderedRepair = { outcome: 'not_needed' };
      await serve({
        repair: async (...order) => {
          asked.push(order);
          return end;
        },
      });
      expect((await post('/sales/7/repair').expect(200)).body).to.deep.equal({ outcome: 'not_needed' });
      end = { outcome: 'repaired', ...facts };
      expect((await post('/sales/7/repair', { force: true }).expect(200)).body).to.deep.equal(end);
      expect(asked).to.deep.equal([
        ['7', { actor: 'ann', force: false }],
        ['7', { actor: 'ann', force: true }],
      ]);
      await post('/sales/7/repair', { force: 'yes' }).expect(400);
      expect((await post('/sales/7/repair', {}, ['viewer']).expect(403)).body.code).to.equal('role_needed');
    });

    it('maps each other outcome to its status', async () => {
      let outcome: Exclude<OrderedRepair['outcome'], 'repaired'> = 'busy';
      await serve({ repair: async () => ({ outcome }) });
      const rows = [
        ['busy', 503, 'repairing'],
        ['superseded', 409, 'wrong_state'],
        ['draft', 409, 'wrong_state'],
        ['retired', 409, 'wrong_state'],
        ['not_found', 404, 'not_found'],
      ] as const;
      for (const [word, status, code] of rows) {
        outcome = word;
        expect((await post('/sales/7/repair', {}).expect(status)).body.code, word).to.equal(code);
      }
    });
  });
});

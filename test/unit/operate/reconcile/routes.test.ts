import { expect } from 'chai';
import request from 'supertest';
import type { Order } from '../../../../src/core/order.js';
import type { Sale } from '../../../../src/core/sale.js';
import { ReconcileWorld } from './reconcile-world.js';
import { bearer, FakeServices, startServer, type Started } from '../../http/http-harness.js';

describe('admin reconcile', () => {
  let world: ReconcileWorld;
  let sale: Sale;
  let fake: FakeServices;
  let server: Started;
  const admin = bearer('boss', ['admin']);

  beforeEach(async () => {
    world = new ReconcileWorld();
    sale = await world.openSale();
    fake = new FakeServices({ reconcile: world.reconcile });
    server = await startServer(fake);
  });
  afterEach(async () => {
    await server.stop();
    expect(fake.bugs, 'no input of a client is reported as a bug').to.deep.equal([]);
  });

  const get = (path: string): request.Test =>
    request(server.operatorsUrl).get(`/admin/v1/reconcile${path}`).set('authorization', admin);
  const post = (path: string): request.Test =>
    request(server.operatorsUrl).post(`/admin/v1/reconcile${path}`).set('authorization', admin);

  it('reports findings in a dry run, and creates and awaits jobs with apply', async () => {
    await world.stray(sale, ['u1']);
    world.onPublish = (batch) => world.work(batch);
    const dry = await post(`/sales/${sale.saleId}`).expect(200);
    expect(dry.body).to.deep.include({ runId: '1', outcome: 'findings', counts: { leak: 1 }, jobs: [] });
    expect(dry.body.findings[0]).to.include({ kind: 'leak', userId: 'u1', saleId: sale.saleId });
    expect(world.jobs.jobs).to.deep.equal([]);
    const applied = await post(`/sales/${sale.saleId}?apply=true`).expect(200);
    expect(applied.body.jobs[0]).to.include({ jobId: '1', kind: 'leak', state: 'compensated', userId: 'u1' });
    expect(world.jobs.audited.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      'boss compensation.added',
      'boss compensation.compensated',
    ]);
    expect((await post(`/sales/${sale.saleId}`).expect(200)).body.outcome).to.equal('match');
    const { runs } = (await get(`/runs?saleId=${sale.saleId}&limit=2`).expect(200)).body;
    expect(runs.map((run: Record<string, unknown>) => [run.runId, run.applied, run.actor, run.outcome])).to.deep.equal([
      ['3', false, 'boss', 'match'],
      ['2', true, 'boss', 'match'],
    ]);
    expect(runs[0].startedAt).to.match(/^20\d\d-/);
  });

  it('returns 409 with the owner during another run, and 404 for an unknown sale [C1]', async () => {
    await world.runsRepository.lease(sale.saleId, 'bob-1', 60_000);
    const { body } = await post(`/sales/${sale.saleId}`).expect(409);
    expect(body).to.include({ code: 'reconcile_running', retryable: true, detail: 'bob-1 is reconciling this sale.' });
    await post('/sales/999').expect(404);
  });

  it('lists jobs page by page and retries them, and returns wrong_state for an abandoned job', async () => {
    const job = { saleId: '7', batchId: null, userId: null, requestId: null, detail: 'x' };
    await world.jobs.add([{ ...job, kind: 'drift', subject: '7' }], 'ann');
    await world.jobs.add([{ ...job, kind: 'leak', subject: '7/u1/k1', userId: 'u1', requestId: 'k1' }], 'ann');
    const [row] = await world.recorded(await world.deducted(sale, ['u1']), ['u1']);
    const order = world.mysql.allOrders.find(({ orderId }) => orderId === row) as Order;
    world.mysql.putOrder({ ...order, saleId: '7', reason: 'compensation_failed' });
    const page = await get('/jobs?saleId=7&state=pending&limit=1').expect(200);
    expect([page.body.jobs.length, page.body.next]).to.deep.equal([1, '1']);
    expect((await get('/jobs?after=1&kind=leak').expect(200)).body.jobs[0]).to.include({ jobId: '2', kind: 'leak' });
    await world.jobs.failed('1', 'keeper', 'gave up');
    await world.jobs.failed('2', 'keeper', 'gave up');
    const retried = await post('/jobs/1/retry').expect(200);
    expect(retried.body).to.deep.include({ outcome: 'retried' });
    expect(retried.body.job).to.include({ state: 'pending', attempts: 0 });
    expect((await post('/jobs/2/retry').expect(409)).body.code).to.equal('wrong_state');
    expect((await post('/jobs/3/retry').expect(404)).body.code).to.equal('job_not_found');
    await world.jobs.done('1', 'keeper', 'adjusted');
    expect((await post('/jobs/1/retry').expect(200)).body.outcome).to.equal('compensated');
  });

  it('names each malformed field', async () => {
    const wrong = ['/runs?limit=0', '/runs?x=1', '/jobs?state=open', '/jobs?kind=oversell', '/jobs?saleId=x&saleId=y'];
    for (const path of wrong) expect((await get(path).expect(400)).body.errors, path).to.have.length(1);
    await post('/sales/x').expect(400);
    await post(`/sales/${sale.saleId}?apply=yes`).expect(400);
    await post('/jobs/x/retry').expect(400);
  });
});

import { expect } from 'chai';
import { Buyers } from '../chaos/harness/buyers.js';
import { ask, type Answer } from '../chaos/harness/http.js';
import type { Program } from '../chaos/harness/programs.js';
import { openSale } from '../chaos/harness/sales.js';
import { until } from '../chaos/harness/wait.js';
import { expectPromise } from '../helpers/promised-time.js';
import { useSystem } from '../helpers/system.js';

const QUICK = { everyMs: 10 };
/** Limit of [T13]. */
const DRAIN_MAX_MS = 10_000;

// These tests run last and alone, because a busy machine proves nothing about time.
describe('promises about time', () => {
  let apis: readonly [Program, Program];
  let admin: string;
  let made = 0;
  const system = useSystem(async ({ programs }) => {
    const [one, two] = await Promise.all([
      programs.start('api'),
      programs.start('api'),
      programs.start('worker'),
      programs.start('keeper', { env: { KEEPER_EVERY_MS: '500' } }),
    ]);
    apis = [one, two];
  });
  const buyersOf = (saleId: string, urls: () => string[]): Buyers =>
    new Buyers(saleId, system.stack.env.JWT_SECRET, urls);
  before(() => {
    admin = buyersOf('1', () => []).token('boss', ['admin']);
  });

  const operate = (path: string, method: 'PUT' | 'POST', body: object): Promise<Answer> =>
    ask(`${apis[0].operatorsUrl}/admin/v1/${path}`, { token: admin, method, body });
  const elapsedMs = async (work: () => Promise<unknown>): Promise<number> => {
    const startedMs = performance.now();
    await work();
    return performance.now() - startedMs;
  };

  it('offers returned units again within a second', async function () {
    await expectPromise(this, 1000, async () => {
      const { saleId } = await openSale(system.stack, { stock: 1 });
      const buyers = buyersOf(saleId, () => [apis[0].url]);
      await buyers.buy('ann');
      const { orderId } = (await buyers.status('ann', 'k1', 20)).json;
      expect((await buyers.buy('bob'))?.json.code).to.equal('sold_out');
      expect((await buyers.move('cancel', 'ann', String(orderId)))?.status).to.equal(200);
      await until(
        'the unit is back',
        async () => {
          const snapshot = await system.stack.audit.store.snapshot({ saleId, bucket: 0 });
          return snapshot?.unitsLeft === 1;
        },
        QUICK,
      );
      const isSold = async (): Promise<boolean> => (await buyers.buy('bob'))?.status === 202;
      return elapsedMs(() => until('it is sold again', isSold, QUICK));
    });
  });

  it('refuses a revoked user at every API within a second', async function () {
    await expectPromise(this, 1000, async () => {
      const userId = `revoked-${process.pid}-${made++}`;
      const token = buyersOf('1', () => []).token(userId);
      const answers = (): Promise<Answer[]> =>
        Promise.all(apis.map(({ url }) => ask(`${url}/v1/me/orders`, { token })));
      for (const { status } of await answers()) expect(status).to.equal(200);
      const { status, text } = await operate('revocations', 'POST', { userId });
      expect(status, text).to.equal(201);
      const areRefused = async (): Promise<boolean> => (await answers()).every((answer) => answer.status === 401);
      return elapsedMs(() => until('both refuse the user', areRefused, QUICK));
    });
  });

  it('applies a switch of one API at the other API within a second', async function () {
    const { saleId } = await openSale(system.stack, { stock: 5 });
    for (const [level, status] of [['L4', 204] as const, ['L0', 200] as const]) {
      await expectPromise(this, 1000, async () => {
        await operate('switches/sale', 'PUT', { level: level === 'L4' ? 'L0' : 'L4' });
        const pageIs = async (wanted: number): Promise<boolean> =>
          (await ask(`${apis[1].url}/v1/sales/${saleId}`)).status === wanted;
        await until('the other level is in force', () => pageIs(level === 'L4' ? 200 : 204));
        expect((await operate('switches/sale', 'PUT', { level })).json).to.include({ level });
        return elapsedMs(() => until(`the page is ${status}`, () => pageIs(status), QUICK));
      });
    }
  });

  for (const name of ['api', 'worker', 'keeper'] as const) {
    it(`drains ${name} under load and exits with 0 within 10 s [T13]`, async function () {
      const { saleId } = await openSale(system.stack, { stock: 100_000 });
      await expectPromise(this, DRAIN_MAX_MS, async () => {
        const leaving = await system.programs.start(name);
        const urls = [name === 'api' ? leaving.url : apis[0].url];
        const buyers = buyersOf(saleId, () => urls);
        const load = buyers.startLoad({ parallel: 16, pauseMs: 20, tries: 1, prefix: `${name}-${made++}` });
        await until('purchases are accepted', () => buyers.opLog.count('ok') > 100);
        const tookMs = await elapsedMs(async () => {
          const stopped = leaving.stop();
          urls[0] = apis[0].url; // like a load balancer
          expect(await stopped).to.deep.equal({ code: 0, signal: null });
        });
        await load.stop();
        return tookMs;
      });
    });
  }
});

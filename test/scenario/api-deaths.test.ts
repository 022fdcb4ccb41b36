import { expect } from 'chai';
import { Buyers, userIds } from '../helpers/buyers.js';
import { ask } from '../helpers/http-client.js';
import { expectInvariants } from '../helpers/invariants.js';
import { openSale } from '../helpers/open-sale.js';
import type { Program } from '../helpers/programs.js';
import { markersOf, type Markers } from '../helpers/stack.js';
import { useSystem } from '../helpers/system.js';
import { until } from '../helpers/until.js';

const STOCK = 20;
const BUYERS = userIds(5);
/** The broker asks 11 to 16 s after the half message, more on a busy machine. */
const CHECK_BACK_MS = 80_000;

/** What an api left behind that was killed at a fail point. */
interface Death {
  readonly saleId: string;
  readonly buyers: Buyers;
  readonly unitsLeft: number;
  readonly pending: number;
  readonly markers: Markers;
}

describe('an api that is killed between two steps of a purchase', () => {
  let survivor: Program;
  const deaths = new Map<string, Death>();
  const points = ['after_precheck', 'after_half', 'after_deduct', 'before_answer', 'after_commit'];
  const system = useSystem(async ({ programs }) => {
    [survivor] = await Promise.all([programs.start('api'), programs.start('worker'), programs.start('keeper')]);
    // all at once: each has to wait for the broker's question
    await Promise.all(points.map(async (point) => deaths.set(point, await killAt(point))));
  });

  async function killAt(point: string): Promise<Death> {
    const { stack, programs } = system;
    const [{ saleId }, api] = await Promise.all([
      openSale(stack, { stock: STOCK }),
      programs.start('api', { env: { FAILPOINT: point } }),
    ]);
    const urls = [api.url];
    const buyers = new Buyers(saleId, stack.env.JWT_SECRET, () => urls);
    await buyers.rush(BUYERS, BUYERS.length);
    expect(await api.ended(), point).to.deep.equal({ code: null, signal: 'SIGKILL' });
    expect(api.log).to.contain(`"failPoint":"${point}"`);
    urls[0] = survivor.url;
    const snapshot = await stack.audit.ledger.snapshot({ saleId, bucket: 0 });
    const { unitsLeft = Number.NaN, pending = [] } = snapshot ?? {};
    return { saleId, buyers, unitsLeft, pending: pending.length, markers: await markersOf(stack, saleId) };
  }

  const deathAt = (point: string): Death => {
    const death = deaths.get(point);
    if (death === undefined) throw new Error(`nobody died at ${point}`);
    return death;
  };
  const answersGiven = async (answer: string): Promise<number> => {
    const { text } = await ask(`${survivor.url}/metrics`);
    return Number(new RegExp(`seckill_check_backs_total\\{answer="${answer}"[^}]*\\} (\\d+)`).exec(text)?.[1] ?? 0);
  };

  /** Every buyer asks again with his key and has exactly one order at the end. */
  async function expectOneOrderEach({ saleId, buyers }: Death): Promise<void> {
    for (const again of await buyers.rush(BUYERS, BUYERS.length, { tries: 20 })) {
      expect(again?.status).to.be.oneOf([200, 202]);
    }
    const figures = await expectInvariants(system.stack, saleId, buyers.opLog);
    const count = BUYERS.length;
    expect(figures).to.include({ rows: count, sold: count, unitsLeft: STOCK - count, failedRows: 0 });
  }

  it('T1 after precheck: nothing was sent and nothing taken; the retry is a first try', async () => {
    const death = deathAt('after_precheck');
    expect(death).to.deep.include({ unitsLeft: STOCK, pending: 0, markers: new Map() });
    expect(death.buyers.opLog.count('unknown')).to.equal(BUYERS.length);
    await expectOneOrderEach(death);
  });

  it('T2 after the half message: the broker asks, the batch is aborted for good; the same key is accepted', async () => {
    const death = deathAt('after_half');
    expect(death).to.deep.include({ unitsLeft: STOCK, pending: 0, markers: new Map() });
    await until(
      'the check-back has aborted the batch',
      async () => [...(await markersOf(system.stack, death.saleId)).values()].includes('aborted'),
      CHECK_BACK_MS,
    );
    await until('the rollback is counted', async () => (await answersGiven('rollback')) >= 1);
    const untouched = await expectInvariants(system.stack, death.saleId, death.buyers.opLog);
    expect(untouched).to.include({ rows: 0, unitsLeft: STOCK });
    await expectOneOrderEach(death);
  });

  it('T3 after deduct: the broker asks, the batch is committed, its orders come; no second deduct', async () => {
    const death = deathAt('after_deduct');
    expect(death.pending, 'deducted and not committed').to.be.at.least(1);
    expect([...death.markers.values()]).to.include('deducted');
    expect(death.buyers.opLog.count('ok'), 'nobody heard of it').to.equal(0);
    const { saleId } = death;
    await until(
      'the orders come without anybody asking again',
      async () => (await system.stack.audit.ledger.pendingCount({ saleId, bucket: 0 })) === 0,
      CHECK_BACK_MS,
    );
    expect(await answersGiven('commit')).to.be.at.least(1);
    const healed = await expectInvariants(system.stack, saleId, death.buyers.opLog);
    expect(healed).to.include({ unitsLeft: death.unitsLeft, rows: STOCK - death.unitsLeft });
    await expectOneOrderEach(death);
  });

  it('T3 before the answer: what the buyers never heard is theirs all the same', async () => {
    const death = deathAt('before_answer');
    expect(death.unitsLeft, 'units were taken').to.be.lessThan(STOCK);
    expect(death.buyers.opLog.count('ok'), 'nobody heard of it').to.equal(0);
    await expectOneOrderEach(death);
  });

  it('T3 after commit: the worker records it, whether its buyers heard the answer or not', async () => {
    const death = deathAt('after_commit');
    expect(death.unitsLeft, 'units were taken').to.be.lessThan(STOCK);
    expect([...death.markers.values()]).to.include('deducted');
    await expectOneOrderEach(death);
  });
});

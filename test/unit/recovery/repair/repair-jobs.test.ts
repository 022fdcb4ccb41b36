import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Sale } from '../../../../src/core/sale.js';
import {
  repairClosedSales,
  type RepairJobPorts,
  LOOK_EVERY_MS,
  repairSales,
  watchSalesInRepair,
} from '../../../../src/recovery/repair/repair-jobs.js';
import { replacing } from '../../../helpers/replacing.js';
import { OPTIONS, RepairWorld } from './repair-world.js';

const DAY_MS = 24 * 3_600_000;

/** Runs everything that does not wait for a clock. */
const turns = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('repair-jobs', () => {
  let world: RepairWorld;
  beforeEach(() => (world = new RepairWorld()));

  const ports = (): RepairJobPorts => ({
    ...world.ports(),
    sales: world.mysql,
    metrics: { ...world.metrics, ...world.repairMetrics },
  });
  /** Creates ports that halt the rebuild of one sale until `goOn`. The test triggers the search for other sales. */
  const whileRebuilt = (long: Sale) => {
    const whole = ports();
    let goOn = (): void => undefined;
    let lookAgain = (): void => undefined;
    const held = new Promise<void>((resolve) => (goOn = resolve));
    const slow: RepairJobPorts = {
      ...whole,
      repairs: replacing(whole.repairs, {
        async *requestsWithUnits(ref) {
          if (ref.saleId === long.saleId) await held;
          yield* whole.repairs.requestsWithUnits(ref);
        },
      }),
      clock: {
        ...whole.clock,
        sleep: (ms, signal) =>
          ms === LOOK_EVERY_MS ? new Promise((resolve) => (lookAgain = resolve)) : whole.clock.sleep(ms, signal),
      },
    };
    return { slow, goOn: () => goOn(), lookAgain: () => lookAgain() };
  };

  const epochs = (...sales: Sale[]): (number | undefined)[] =>
    sales.map(({ saleId }) => world.store.bucket({ saleId, bucket: 0 }).sale?.epoch);
  const close = async (sale: Sale, closesAtMs = sale.closesAtMs): Promise<Sale> => {
    const closed = { ...sale, state: 'closed' as const, closesAtMs };
    world.mysql.putSale(closed);
    await world.store.setState(closed, 'closed');
    return closed;
  };

  it('repairs every live sale on a changed server, and no sale on a healthy server [R1, R7]', async () => {
    const [one, two] = [await world.openSale(), await world.openSale()];
    const job = repairSales(ports(), OPTIONS);
    await job.runOnce();
    expect(epochs(one, two)).to.deep.equal([1, 1]);
    world.store.restart();
    await job.runOnce();
    expect(epochs(one, two)).to.deep.equal([2, 2]);
    expect(world.results).to.deep.equal(['repaired', 'repaired']);
    await job.runOnce();
    expect(world.results).to.have.length(2);
  });

  it('loads a sale that Redis lacks once it was missed twice, but never a draft [R5]', async () => {
    const sale = await world.openSale();
    const draft = await world.mysql.create({ ...sale, sku: 'draft' });
    world.store.restart({ empty: true });
    const job = repairSales(ports(), OPTIONS);
    await job.runOnce();
    expect(epochs(sale)).to.deep.equal([undefined]);
    await job.runOnce();
    expect(epochs(sale, draft)).to.deep.equal([2, undefined]);
  });

  it('rebuilds a bucket whose epoch is behind MySQL [R2]', async () => {
    const sale = await world.openSale();
    world.mysql.putSale({ ...sale, epoch: 4 });
    await repairSales(ports(), OPTIONS).runOnce();
    expect(epochs(sale)).to.deep.equal([5]);
  });

  it('repairs other sales if some fail, and starts the next run with unreached sales [R10]', async () => {
    const sales: Sale[] = [];
    for (let i = 0; i < 32; i++) sales.push(await world.openSale());
    world.store.restart();
    const whole = ports();
    const broken: RepairJobPorts = {
      ...whole,
      repairs: replacing(whole.repairs, {
        requestsWithUnits: (ref) => (world.store.breakNext('read_fails'), whole.repairs.requestsWithUnits(ref)),
      }),
    };
    const job = repairSales(broken, OPTIONS);
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(world.results).to.deep.equal(Array.from({ length: 32 }, () => 'failed'));
    expect(world.warnings, 'the loop of the job logs the outage').to.deep.equal([]);
    world.clock.advance(OPTIONS.leaseMs);
    const healthy = repairSales(whole, OPTIONS);
    await healthy.runOnce();
    await healthy.runOnce();
    expect(new Set(epochs(...sales))).to.deep.equal(new Set([3]));
  });

  it('repairs a sale while another sale is still being rebuilt [R1]', async () => {
    const [long, short] = [await world.openSale(), await world.openSale()];
    const { slow, goOn, lookAgain } = whileRebuilt(long);
    world.mysql.putSale({ ...long, epoch: 2 });
    const run = repairSales(slow, OPTIONS).runOnce();
    await turns();
    world.mysql.putSale({ ...short, epoch: 2 });
    lookAgain();
    await turns();
    expect(epochs(long, short), 'only the short one is rebuilt').to.deep.equal([1, 3]);
    goOn();
    await run;
    expect(epochs(long, short)).to.deep.equal([3, 3]);
  });

  it('delays no other sale if a search fails during a rebuild [R1]', async () => {
    const [long, short] = [await world.openSale(), await world.openSale()];
    const lost = new OperationalError('mysql', 'the connection was lost', { retryable: true });
    let failures = 0;
    const list = world.mysql.list.bind(world.mysql);
    world.mysql.list = (...args) => (failures-- > 0 ? Promise.reject(lost) : list(...args));
    const { slow, goOn, lookAgain } = whileRebuilt(long);
    world.mysql.putSale({ ...long, epoch: 2 });
    const run = repairSales(slow, OPTIONS)
      .runOnce()
      .catch((error: unknown) => error);
    await turns();
    failures = 1;
    lookAgain();
    await turns();
    world.mysql.putSale({ ...short, epoch: 2 });
    lookAgain();
    await turns();
    expect(epochs(long, short), 'the short one is found after the failure').to.deep.equal([1, 3]);
    goOn();
    expect(await run).to.equal(lost);
    expect(epochs(long, short)).to.deep.equal([3, 3]);
  });

  it('does not fail if another keeper repairs the sale [R10]', async () => {
    const sale = await world.openSale();
    await world.ports().repairs.lock({ saleId: sale.saleId, bucket: 0 }, 'another', 60_000);
    await repairSales(ports(), OPTIONS).runOnce();
    expect(world.results).to.deep.equal(['busy']);
  });

  it('closed sales: rebuilds after a restart only the sales in demand [R1]', async () => {
    const sales: Sale[] = [];
    for (let i = 0; i < 40; i++) sales.push(await world.openSale());
    for (const sale of sales) await close(sale);
    const live = await world.openSale();
    world.store.restart();
    const job = repairClosedSales(ports(), OPTIONS);
    await job.runOnce();
    await job.runOnce();
    expect(world.results).to.deep.equal([]);

    const [asked, other] = sales as [Sale, Sale];
    for (const { saleId } of [asked, live]) await world.store.askForRepair(saleId);
    await world.store.askForRepair('999');
    await job.runOnce();
    expect(epochs(asked, other, live)).to.deep.equal([2, 1, 1]);
    expect(world.store.bucket({ saleId: asked.saleId, bucket: 0 }).sale?.state).to.equal('closed');
    await job.runOnce();
    expect([world.results, [...world.store.asks]], 'each is answered').to.deep.equal([['repaired'], []]);
  });

  it('closed sales: loads a missing sale on demand, and never a retired sale [R5]', async () => {
    const [gone, retired] = [await world.openSale(), await world.openSale()];
    await close(gone);
    world.mysql.putSale({ ...(await close(retired)), retiredAtMs: world.clock.nowMs() });
    world.store.restart({ empty: true });
    for (const { saleId } of [gone, retired]) await world.store.askForRepair(saleId);
    const job = repairClosedSales(ports(), OPTIONS);
    await job.runOnce();
    await job.runOnce();
    expect(epochs(gone, retired)).to.deep.equal([2, undefined]);
    expect([...world.store.asks]).to.deep.equal([]);
  });

  it('closed sales: repeats interrupted repairs, one per run, the latest sale first [R10]', async () => {
    const [old, late] = [await world.openSale(), await world.openSale()];
    const nowMs = world.clock.nowMs();
    await close(old, nowMs - 9 * DAY_MS);
    await close(late, nowMs - DAY_MS / 2);
    for (const { saleId } of [old, late]) await world.ports().repairs.lock({ saleId, bucket: 0 }, 'dead', 1);
    world.clock.advance(2);
    const live = repairSales(ports(), OPTIONS);
    await live.runOnce();
    expect(epochs(old, late)).to.deep.equal([1, 1]);
    const job = repairClosedSales(ports(), OPTIONS);
    await job.runOnce();
    expect(epochs(old, late)).to.deep.equal([1, 2]);
    await job.runOnce();
    await job.runOnce();
    expect(epochs(old, late)).to.deep.equal([2, 2]);
    expect(world.store.bucket({ saleId: late.saleId, bucket: 0 }).sale?.state).to.equal('closed');
  });

  it('closed sales: repeats an interrupted repair even without the list of sales in demand [R10]', async () => {
    const sale = await world.openSale();
    await close(sale);
    await world.ports().repairs.lock({ saleId: sale.saleId, bucket: 0 }, 'dead', 1);
    world.clock.advance(2);
    const whole = ports();
    const asked = () => Promise.reject(new OperationalError('redis', 'away', { retryable: true }));
    const job = repairClosedSales({ ...whole, repairs: replacing(whole.repairs, { asked }) }, OPTIONS);
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(epochs(sale)).to.deep.equal([2]);
  });

  it('watch-sales-in-repair: publishes how many sales wait, and how long a live sale is overdue', async () => {
    const [live, closed] = [await world.openSale(), await world.openSale()];
    await close(closed);
    const watch = watchSalesInRepair(ports(), { afterMs: 60_000 });
    expect(await watch.runOnce()).to.equal('idle');
    expect([world.locked, world.overdue.sale_locked]).to.deep.equal([
      [0, 0],
      [0, 0],
    ]);
    world.store.restart();
    await ports().repairs.lock({ saleId: closed.saleId, bucket: 0 }, 'dead', 1);
    world.clock.advance(30_000);
    expect(await watch.runOnce()).to.equal(undefined);
    expect(world.locked).to.deep.equal([1, 1]);
    world.clock.advance(61_000);
    await watch.runOnce();
    expect(world.overdue.sale_locked).to.deep.equal([1, 1000]);
    await world.repair(live);
    await watch.runOnce();
    expect([world.locked, world.overdue.sale_locked]).to.deep.equal([
      [0, 1],
      [0, 0],
    ]);
  });

  it('counts a sale as overdue even if the clock is set back [T12]', async () => {
    await world.openSale();
    const watch = watchSalesInRepair(ports(), { afterMs: 60_000 });
    world.store.restart();
    await watch.runOnce();
    world.clock.step(-3_600_000);
    world.clock.advance(61_000);
    await watch.runOnce();
    expect(world.overdue.sale_locked).to.deep.equal([1, 1000]);
  });

  it('skips only the sales of a silent Redis server, and fails the runs at their end', async () => {
    const [live, cut] = [await world.openSale(), await world.openSale()];
    world.store.restart();
    world.store.cutOff.add(cut.saleId);
    const watch = watchSalesInRepair(ports(), { afterMs: 60_000 });
    expect(await watch.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(world.locked).to.deep.equal([1, 0]);
    const job = repairSales(ports(), OPTIONS);
    expect(await job.runOnce().catch((error: Error) => error.name)).to.equal('OperationalError');
    expect(epochs(live, cut)).to.deep.equal([2, 1]);
  });
});

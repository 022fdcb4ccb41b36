import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import type { Clock } from '../../../../src/core/ports/clock.js';
import type { Sale } from '../../../../src/core/sale.js';
import { repairAsked } from '../../../../src/recovery/repair/repair-jobs.js';
import type { RepairPorts, RepairStep } from '../../../../src/recovery/repair/repair-sale.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { replacing } from '../../../helpers/replacing.js';
import { OPTIONS, RepairWorld } from './repair-world.js';

describe('repair-sale', () => {
  let world: RepairWorld;
  let sale: Sale;
  beforeEach(async () => {
    world = new RepairWorld();
    sale = await world.openSale({ stock: 10, limitPerBuyer: 2 });
  });

  /** Creates two orders, an ended and released order, and a batch that no worker has recorded. */
  async function busySale(): Promise<{ readonly heldId: string }> {
    await world.work(await world.deducted(sale, ['ann*2', 'bob']));
    const ended = await world.deducted(sale, ['cid']);
    await world.work(ended);
    world.mysql.endOrder('3', 'cancelled');
    const release = { saleId: sale.saleId, bucket: 0, userId: 'cid', requestId: 'k1', orderId: '3', withUnits: true };
    await world.store.release([{ ...release, batchId: ended.batchId }]);
    const { batchId } = await world.deducted(sale, ['dan']);
    return { heldId: batchId };
  }
  const BOOKS = { 'ann/k1': 'ordered:1:2', 'bob/k1': 'ordered:2:1', 'cid/k1': 'released:3:1' };
  const epochInRepository = (): number | undefined => world.mysql.saleOf(sale.saleId)?.epoch;

  it('rebuilds a lost sale from its rows and opens it in a new epoch [R5]', async () => {
    await busySale();
    world.store.restart({ empty: true });
    const result = await world.repair(sale);
    expect(result).to.include({ outcome: 'repaired', epoch: 2, unitsLeft: 7, rows: 3, held: 0 });
    expect(world.bucketOf(sale)).to.deep.equal({ state: 'open', epoch: 2, unitsLeft: 7, requests: BOOKS });
    expect(epochInRepository()).to.equal(2);
    expect(world.mysql.audited.at(-1)).to.include({ actor: 'keeper', action: 'sale.repaired' });
    expect((await world.deducted({ ...sale, epoch: 2 }, ['eve'])).purchases).to.have.length(1);
  });

  it('keeps everything except the epoch if nothing was lost [R1]', async () => {
    const { heldId } = await busySale();
    world.store.restart();
    expect(await world.repair(sale)).to.include({ outcome: 'repaired', unitsLeft: 6, rows: 3, held: 1 });
    const requests = { ...BOOKS, 'dan/k1': `held:${heldId}:1` };
    expect(world.bucketOf(sale)).to.deep.equal({ state: 'open', epoch: 2, unitsLeft: 6, requests });
    const { pending, markers } = world.store.bucket({ saleId: sale.saleId, bucket: 0 });
    expect([...pending.keys()]).to.deep.equal([heldId]);
    expect(markers.get(heldId)).to.include({ kind: 'deducted' });
  });

  it('restores recorded purchases whose last write was lost: deduct, mark or release [R2, R11]', async () => {
    const batch = await world.deducted(sale, ['ann*2', 'bob']);
    await world.work(batch);
    world.store.restart({ lose: 1 }); // mark recorded
    expect(await world.repair(sale)).to.include({ unitsLeft: 7, held: 0 });
    const two = { 'ann/k1': BOOKS['ann/k1'], 'bob/k1': BOOKS['bob/k1'] };
    expect(world.bucketOf(sale).requests).to.deep.equal(two);

    const next = { ...sale, epoch: 2 };
    await world.work(await world.deducted(next, ['cid']));
    world.mysql.endOrder('3', 'cancelled');
    world.store.restart({ lose: 2 }); // deduct and mark recorded
    expect(await world.repair(next)).to.include({ epoch: 3, unitsLeft: 7 });
    expect(world.bucketOf(sale).requests).to.deep.equal(BOOKS);
  });

  it('never reuses an epoch, even if MySQL was restored from an older copy [D5]', async () => {
    const bucket = world.store.bucket({ saleId: sale.saleId, bucket: 0 });
    if (bucket.sale !== null) bucket.sale.epoch = 5;
    world.store.restart();
    expect(await world.repair(sale)).to.include({ outcome: 'repaired', epoch: 6 });
    expect(epochInRepository()).to.equal(6);
  });

  it('keeps and reports orders that MySQL lost, in each repair [D5]', async () => {
    await busySale();
    world.mysql.loseOrder('1');
    const logged: object[] = [];
    const ports = { ...world.ports(), log: { ...world.log, warn: (fields: object) => void logged.push(fields) } };
    for (const epoch of [2, 3]) {
      const { tookMs, ...result } = { tookMs: 0, ...(await world.repair(sale, ports)) };
      expect(tookMs).to.be.greaterThan(0);
      expect(result).to.deep.equal({ outcome: 'repaired', epoch, unitsLeft: 6, rows: 2, held: 1, ordersLost: 1 });
      expect(world.bucketOf(sale)).to.include({ epoch, unitsLeft: 6 });
      expect(world.bucketOf(sale).requests).to.include(BOOKS);
    }
    const { saleId } = sale;
    expect(logged).to.deep.equal([2, 3].map((epoch) => ({ saleId, epoch, ordersLost: 1 })));
  });

  it('logs everything known about a lost order for which no units are left [D5]', async () => {
    await busySale();
    world.mysql.loseOrder('1');
    world.mysql.putSale({ ...(await world.mysql.find(sale.saleId))!, stock: 2 });
    const logged: object[] = [];
    const ports = { ...world.ports(), log: { ...world.log, error: (fields: object) => void logged.push(fields) } };
    expect(await world.repair(sale, ports)).to.include({ rows: 2, ordersLost: 0 });
    expect(logged).to.deep.equal([{ saleId: sale.saleId, request: 'ann/k1', entry: 'ordered:1:2' }]);
  });

  it('keeps the units of a parked batch and restores its marker [R6]', async () => {
    const { batch, deadLetterId } = await world.parkedBatch(sale, ['ann', 'bob']);
    world.store.restart({ empty: true });
    expect(await world.repair(sale)).to.include({ unitsLeft: 8, held: 2, rows: 0 });
    expect(await world.store.unpark(batch)).to.equal('unparked');
    expect(world.deadLetter(deadLetterId).state).to.equal('parked');
  });

  it('waits for the workers up to a limit, and accepts no purchase meanwhile [R3]', async () => {
    const batch = await world.deducted(sale, ['ann']);
    world.store.restart();
    const startedMs = world.clock.nowMs();
    let reads = 0;
    const ports = world.ports();
    const sales = replacing(world.mysql, {
      find: async (saleId) => {
        if (reads++ === 2) {
          await world.recorded(batch);
          const answer = await world.store.markRecorded([{ batch, orders: [] }]).catch((error: Error) => error);
          expect(answer).to.be.instanceOf(OperationalError);
          expect((await world.store.deduct(batch)).outcome).to.equal('already_deducted');
        }
        return world.mysql.find(saleId);
      },
    });
    expect(await world.repair(sale, { ...ports, sales })).to.include({ rows: 1, held: 0, unitsLeft: 9 });
    expect(world.clock.nowMs() - startedMs).to.be.within(OPTIONS.quietMs + 500, OPTIONS.quietMs + 1000);
  });

  it('waits for a sale with a batch in Redis or a young order [R1]', async () => {
    const progress = {
      ends: async () => new Map([['q', 7]]),
      haveReceived: async () => true,
      unreceivedSales: async () => null,
    };
    const tookMs = async (lastOrderMs?: number): Promise<number> => {
      const before = world.ports();
      const repository = replacing(before.repository, {
        ...(lastOrderMs === undefined ? {} : { lastOrderMs: async () => lastOrderMs }),
      });
      world.store.restart();
      sale = { ...sale, epoch: epochInRepository() ?? 0 };
      const startedMs = world.clock.nowMs();
      const result = await world.repair(sale, { ...before, repository, progress });
      expect(result.outcome).to.equal('repaired');
      return world.clock.nowMs() - startedMs;
    };
    expect(await tookMs(), 'it never sold').to.equal(0);
    expect(await tookMs(world.clock.nowMs() - 9_000), 'a young order').to.equal(OPTIONS.quietMs);
    expect(await tookMs(world.clock.nowMs() - 10_000), 'an old order').to.equal(0);
    sale = { ...sale, epoch: epochInRepository() ?? 0 };
    await world.deducted(sale, ['dan']);
    expect(await tookMs(), 'a batch that no worker has recorded').to.equal(OPTIONS.quietMs);
  });

  it('allows one repair at a time, and voids a repair that outlives its lease [R10]', async () => {
    await busySale();
    world.store.restart();
    const ports = world.ports();
    let second: unknown;
    const slow: RepairPorts = {
      ...ports,
      repository: {
        ...ports.repository,
        raiseEpoch: async (...args) => {
          expect(await world.repair(sale), 'while the lease is renewed').to.deep.equal({ outcome: 'busy' });
          world.clock.advance(OPTIONS.leaseMs);
          second = await world.repair(sale);
          return ports.repository.raiseEpoch(...args);
        },
      },
    };
    expect(await world.repair(sale, slow)).to.deep.equal({ outcome: 'superseded' });
    expect(second).to.include({ outcome: 'repaired', epoch: 2 });
    expect(world.bucketOf(sale)).to.include({ epoch: 2, unitsLeft: 6 });
    // MySQL is now an epoch ahead, and the next run repairs that.
    expect(epochInRepository()).to.equal(3);
    expect(await world.repair({ ...sale, epoch: 3 })).to.include({ outcome: 'repaired', epoch: 4, unitsLeft: 6 });
  });

  it('renews its lease by a timer while MySQL is slow [R10]', async () => {
    await busySale();
    world.store.restart();
    const ports = world.ports();
    let wake = (): void => undefined;
    const untilWoken = (signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        wake = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    const sleep: Clock['sleep'] = (ms, signal) => (signal === undefined ? world.clock.sleep(ms) : untilWoken(signal));
    const orderPage: RepairPorts['repository']['orderPage'] = async (...args) => {
      for (let third = 0; third < 6; third++) {
        world.clock.advance(OPTIONS.leaseMs / 3);
        wake();
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(await world.repair(sale)).to.deep.equal({ outcome: 'busy' });
      return ports.repository.orderPage(...args);
    };
    const slow = { ...ports, clock: { ...ports.clock, sleep }, repository: { ...ports.repository, orderPage } };
    expect(await world.repair(sale, slow)).to.include({ outcome: 'repaired', epoch: 2, unitsLeft: 6 });
  });

  it('sends Redis only the entries to stage, and one renewal of each lease', async () => {
    sale = await world.openSale({ stock: 100, buckets: 4 });
    for (let buyer = 0; buyer < 25; buyer++) await world.recorded(batchOf(sale, purchasesOf(`u${buyer}`)));
    world.store.restart({ empty: true });
    const ports = world.ports();
    const sizes: number[] = [];
    const stage: RepairPorts['repairs']['stage'] = (ref, token, entries) => {
      sizes.push(entries.length);
      return ports.repairs.stage(ref, token, entries);
    };
    expect(await world.repair(sale, world.ports({ stage }))).to.include({ outcome: 'repaired', rows: 25 });
    expect(sizes.filter((size) => size === 0)).to.have.length(4);
  });

  it('retries for some seconds if Redis is silent, without counting twice [R10, R8]', async () => {
    await busySale();
    world.store.restart();
    const { repairs } = world.ports();
    const noAnswer = new OperationalError('redis', 'no answer', { retryable: true });
    let failures = 0;
    const stage: RepairPorts['repairs']['stage'] = async (ref, token, entries) => {
      if (entries.length === 0 || failures === 4) return repairs.stage(ref, token, entries);
      if (++failures === 3) await repairs.stage(ref, token, entries); // its reply is lost
      throw noAnswer;
    };
    expect(await world.repair(sale, world.ports({ stage }))).to.include({ outcome: 'repaired', unitsLeft: 6 });
    expect(failures).to.equal(4);
    expect(world.bucketOf(sale).requests).to.include(BOOKS);

    const never: typeof stage = async (ref, token, entries) => {
      if (entries.length === 0) return repairs.stage(ref, token, entries);
      throw noAnswer;
    };
    const error = await world.repair(sale, world.ports({ stage: never })).catch((one: unknown) => one);
    expect(error, 'not for ever').to.equal(noAnswer);
  });

  it('leaves no trace on a server that is replaced during a repair [R10, R7]', async () => {
    await busySale();
    world.store.restart();
    const ports = world.ports();
    const reopen: RepairPorts['repairs']['swap'] = (...args) => {
      world.store.restart();
      return ports.repairs.swap(...args);
    };
    expect(await world.repair(sale, world.ports({ swap: reopen }))).to.deep.equal({ outcome: 'superseded' });
    expect(world.bucketOf(sale).state).to.equal('repair');
    expect(await world.repair(sale)).to.include({ outcome: 'repaired', epoch: 3, unitsLeft: 6 });
  });

  it('leaves the sale locked after a crash, and the next repair ends with the same numbers [R10]', async () => {
    await busySale();
    world.store.restart();
    const died = new OperationalError('redis', 'died here', { retryable: true });
    const die = async (): Promise<never> => Promise.reject(died);
    const ports = world.ports();
    const deaths: RepairPorts[] = [
      world.ports({ statusOf: die }), // after the lock
      {
        ...ports,
        repository: { ...ports.repository, raiseEpoch: (...args) => ports.repository.raiseEpoch(...args).then(die) },
      },
      world.ports({ swap: die }), // after the stock
    ];
    for (const dead of deaths) {
      expect(await world.repair(sale, dead).catch((error: unknown) => error)).to.equal(died);
      expect(world.bucketOf(sale).state).to.equal('repair');
      expect(await world.repair(sale)).to.deep.equal({ outcome: 'busy' });
      world.clock.advance(OPTIONS.leaseMs);
    }
    expect(await world.repair(sale)).to.include({ outcome: 'repaired', unitsLeft: 6, rows: 3, held: 1 });
    expect(world.bucketOf(sale).requests).to.include(BOOKS);
  });

  it('ends in the state that an operator has set, even between its last two steps', async () => {
    world.store.restart({ empty: true });
    const ports = world.ports();
    const reopen: RepairPorts['repairs']['swap'] = async (...args) => {
      const word = await ports.repairs.swap(...args);
      await world.mysql.move(sale.saleId, 'closed', 'ann'); // after the answer `repairing`
      return word;
    };
    const raiseEpoch: RepairPorts['repository']['raiseEpoch'] = async (...args) => {
      await world.mysql.move(sale.saleId, 'paused', 'ann');
      return ports.repository.raiseEpoch(...args);
    };
    const seen: string[] = [];
    const spying = { ...ports, repository: { ...ports.repository, raiseEpoch } };
    const result = await world.repair(sale, {
      ...spying,
      repairs: replacing(ports.repairs, {
        swap: async (ref, token, rebuilt) => (seen.push(rebuilt.state), reopen(ref, token, rebuilt)),
      }),
    });
    expect(result.outcome).to.equal('repaired');
    expect(seen).to.deep.equal(['paused']);
    expect(world.bucketOf(sale).state).to.equal('closed');
  });

  it('changes nothing for an operator without need, and only the epoch with force', async () => {
    await busySale();
    const before = world.bucketOf(sale);
    const ask = (force: boolean, onStep?: (step: RepairStep) => void) =>
      repairAsked(sale.saleId, force, world.ports(), OPTIONS, { actor: 'ann', ...(onStep ? { onStep } : {}) });
    expect(await ask(false)).to.deep.equal({ outcome: 'not_needed' });
    expect(world.bucketOf(sale)).to.deep.equal(before);
    const steps: string[] = [];
    expect(await ask(true, ({ step }) => steps.push(step))).to.include({ outcome: 'repaired', epoch: 2 });
    expect(steps).to.deep.equal(['locked', 'quiet', 'epoch', 'staged']);
    expect(world.bucketOf(sale)).to.deep.equal({ ...before, epoch: 2 });
    expect(world.mysql.audited.at(-1)).to.include({ actor: 'ann' });
  });

  it('does not repair a draft or an unknown sale', async () => {
    const draft = await world.mysql.create({ ...sale, sku: 'draft' });
    for (const [saleId, outcome] of [
      [draft.saleId, 'draft'],
      ['999', 'not_found'],
    ] as const) {
      expect(await repairAsked(saleId, true, world.ports(), OPTIONS, { actor: 'ann' })).to.deep.equal({ outcome });
    }
  });
});

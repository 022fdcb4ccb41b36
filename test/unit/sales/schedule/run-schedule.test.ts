import { expect } from 'chai';
import { OperationalError } from '../../../../src/core/errors.js';
import { batchOf, purchasesOf } from '../../../helpers/sales.js';
import { MINUTE_MS, ScheduleWorld } from './schedule-world.js';
import { partial } from '../../../helpers/partial.js';

describe('run-schedule', () => {
  let world: ScheduleWorld;
  beforeEach(() => {
    world = new ScheduleWorld();
  });
  const advance = (minutes: number): void => world.clock.advance(minutes * MINUTE_MS);

  it('takes each step of a sale on time and once in the audit log', async () => {
    const sale = await world.create();
    const run = async (): Promise<(string | undefined)[]> => {
      await world.run();
      await world.run();
      return [world.state(sale), await world.inRedis(sale)];
    };
    advance(49);
    expect(await run()).to.deep.equal(['draft', undefined]);
    advance(1);
    expect(await run(), 'ten minutes before').to.deep.equal(['warm', 'warm']);
    advance(9);
    expect(await run()).to.deep.equal(['warm', 'warm']);
    world.clock.advance(40_000);
    expect(await run(), 'ahead of its time: Redis keeps buyers out').to.deep.equal(['open', 'open']);
    const early = await world.redis.precheck({ saleId: sale.saleId, bucket: 0 }, purchasesOf('u1'));
    expect(early.answers).to.deep.equal([{ outcome: 'not_open' }]);
    world.clock.advance(20_000);
    expect((await world.redis.precheck({ saleId: sale.saleId, bucket: 0 }, purchasesOf('u1'))).answers).to.deep.equal([
      null,
    ]);
    advance(59);
    expect(await run()).to.deep.equal(['open', 'open']);
    advance(1);
    expect(await run()).to.deep.equal(['closed', 'closed']);
    advance(1);
    await world.compare();
    expect(world.compared, 'too early').to.deep.equal([]);
    advance(1);
    await world.compare();
    await world.compare();
    expect(world.compared).to.deep.equal([sale.saleId]);
    expect(world.audit(sale)).to.deep.equal([
      'ann sale.created',
      'keeper sale.warmed',
      'keeper sale.opened',
      'keeper sale.closed',
      'keeper sale.compared',
    ]);
  });

  it('leaves a sale without a warm time to operators', async () => {
    const sale = await world.create({ warmBeforeMs: null });
    advance(59.9);
    await world.run();
    expect(world.state(sale)).to.equal('draft');
    await world.admin.warm(sale.saleId, 'ann');
    await world.admin.open(sale.saleId, 'ann');
    advance(100);
    await world.run();
    expect(world.state(sale)).to.equal('open');
  });

  it('takes each step once if two keepers run at once', async () => {
    const sale = await world.create();
    for (const minutes of [50, 9.9, 60.1]) {
      advance(minutes);
      await Promise.all([world.run(), world.run()]);
    }
    expect(world.audit(sale)).to.deep.equal([
      'ann sale.created',
      'keeper sale.warmed',
      'keeper sale.opened',
      'keeper sale.closed',
    ]);
  });

  it('continues in the next run if a keeper died between Redis and MySQL while warming', async () => {
    const sale = await world.create();
    advance(50);
    await world.redis.warm(sale); // the keeper dies here
    await world.run();
    expect(world.state(sale)).to.equal('warm');
    expect(world.audit(sale)).to.deep.equal(['ann sale.created', 'keeper sale.warmed']);
  });

  it('respects a sale that an operator closed, paused, opened or rescheduled', async () => {
    const [closed, paused, moved] = [await world.create(), await world.create(), await world.create()];
    advance(50);
    await world.run();
    await world.admin.close(closed.saleId, 'bob');
    await world.admin.open(paused.saleId, 'bob');
    await world.admin.pause(paused.saleId, 'bob');
    world.mysql.putSale({ ...moved, state: 'warm', opensAtMs: moved.opensAtMs + 30 * MINUTE_MS });
    advance(9.9);
    await world.run();
    expect([closed, paused, moved].map((sale) => world.state(sale))).to.deep.equal(['closed', 'paused', 'warm']);
    expect(world.audit(paused).at(-1)).to.equal('bob sale.paused');
  });

  it('drops a step whose data was read before an operator acted', async () => {
    const sale = await world.create();
    advance(59.9);
    const old = await world.schedule.due(10);
    await world.run();
    await world.admin.pause(sale.saleId, 'bob');
    const late = { ...world.schedule, due: async () => [{ ...old[0]!, state: 'warm' as const }] };
    await world.run({ schedule: partial(late) });
    expect([world.state(sale), await world.inRedis(sale)]).to.deep.equal(['paused', 'paused']);
  });

  it('keeps the pause of an operator who acts between the two writes of an opening', async () => {
    const sale = await world.create();
    advance(50);
    await world.run();
    advance(9.9);
    const { setState } = world.redis;
    let once = true;
    world.redis.setState = async (of, state) => {
      if (once && state === 'open') {
        once = false;
        await world.admin.pause(sale.saleId, 'bob'); // in MySQL and Redis, both before the keeper's own write to Redis
      }
      return setState.call(world.redis, of, state);
    };
    await world.run();
    expect([world.state(sale), await world.inRedis(sale)]).to.deep.equal(['paused', 'paused']);
  });

  it('closes a paused sale at its end by the clock of Redis', async () => {
    const sale = await world.create();
    advance(59.9);
    await world.run();
    await world.admin.pause(sale.saleId, 'bob');
    advance(61);
    const slow = async (of: typeof sale) => {
      const found = await world.readiness(of);
      return { ...found, redisNowMs: (found.redisNowMs ?? 0) - 2 * MINUTE_MS };
    };
    await world.run({ readiness: slow });
    expect(world.state(sale)).to.equal('paused');
    await world.run();
    expect(world.state(sale)).to.equal('closed');
  });

  it('names a sale that would sell wrongly, and opens it once it is right', async () => {
    const sale = await world.create();
    advance(50);
    await world.run();
    world.redis.bucket({ saleId: sale.saleId, bucket: 0 }).unitsLeft = 9;
    advance(9.9);
    await world.run();
    expect(world.state(sale)).to.equal('warm');
    expect(world.notReady).to.deep.equal([[sale.saleId, 1]]);
    expect(world.logged.at(-1)).to.include('not ready').and.include('stock: Redis has 9 units, but MySQL 10');
    world.redis.bucket({ saleId: sale.saleId, bucket: 0 }).unitsLeft = 10;
    await world.run();
    expect([world.state(sale), world.notReady]).to.deep.equal(['open', []]);
  });

  it('names an unreachable broker once per keeper, and opens the sale anyway', async () => {
    const sale = await world.create();
    world.topics = 'the broker cannot be reached at b:1: refused';
    const keeper = world.keeper();
    advance(50);
    await keeper.runOnce();
    await keeper.runOnce();
    expect(world.notReady).to.deep.equal([[sale.saleId, 1]]);
    expect(world.logged).to.have.length(1);
    expect(world.logged[0]).to.include('topics: the broker cannot be reached');
    advance(9.9);
    await keeper.runOnce();
    expect(world.state(sale)).to.equal('open');
    world.topics = null;
    await keeper.runOnce();
    expect(world.logged.at(-1)).to.include('is ready now');
  });

  it('keeps a sale unready while its Redis is silent, without delaying other sales', async () => {
    const [broken, fine] = [await world.create(), await world.create()];
    advance(50);
    await world.run();
    const away = new OperationalError('redis', 'no answer', { retryable: true });
    const readiness = (sale: typeof broken) =>
      sale.saleId === broken.saleId ? Promise.reject(away) : world.readiness(sale);
    advance(9.9);
    let thrown: unknown;
    await world.run({ readiness }).catch((error: unknown) => (thrown = error));
    expect(thrown).to.equal(away);
    expect([world.state(broken), world.state(fine)]).to.deep.equal(['warm', 'open']);
    expect(world.notReady.map(([saleId]) => saleId)).to.include(broken.saleId);
  });

  it('opens a sale on time although hundreds of warm sales open later', async () => {
    const nowMs = world.clock.nowMs();
    const window = { opensAtMs: nowMs + 5000 * MINUTE_MS, closesAtMs: nowMs + 6000 * MINUTE_MS };
    for (let i = 0; i < 501; i++) await world.create({ ...window, warmBeforeMs: 4999 * MINUTE_MS });
    advance(2);
    await world.run();
    const sale = await world.create();
    advance(57);
    await world.run();
    expect(world.state(sale)).to.equal('warm');
    advance(2.6);
    await world.run();
    expect(world.state(sale)).to.equal('open');
  });

  it('opens a sale on time although the Redis calls of hundreds of sales time out', async () => {
    const early = { warmBeforeMs: 11 * MINUTE_MS, opensAtMs: world.clock.nowMs() + 55 * MINUTE_MS };
    const broken = [];
    for (let i = 0; i < 200; i++) broken.push(await world.create(early));
    const fine = await world.create();
    const away = new Set(broken.map(({ saleId }) => saleId));
    advance(50);
    await world.run();
    expect(world.state(fine)).to.equal('warm');
    let tried = 0;
    const readiness = async (sale: typeof fine) => {
      if (!away.has(sale.saleId)) return world.readiness(sale);
      if (++tried % 16 === 0) world.clock.advance(1500); // 16 time-outs end at the same time
      throw new OperationalError('redis', 'no answer', { retryable: true });
    };
    const keeper = world.keeper({ readiness });
    const startedMs = world.clock.nowMs();
    let runs = 0;
    while (world.state(fine) === 'warm' && runs++ < 100) {
      await keeper.runOnce().catch(() => undefined);
      world.clock.advance(2000);
    }
    expect(world.clock.nowMs() - startedMs, 'before its time').to.be.below(10 * MINUTE_MS);
    expect(world.notReady.length, 'every sale is named').to.equal(200);
    const triedBefore = tried;
    for (let more = 0; more < 3; more++) await keeper.runOnce().catch(() => undefined);
    expect(tried, 'and tried again').to.be.above(triedBefore);
  });

  it('warms and opens a late sale in one run after the keepers were down', async () => {
    const [late, missed] = [
      await world.create(),
      await world.create({ closesAtMs: world.clock.nowMs() + 61 * MINUTE_MS }),
    ];
    advance(80);
    await world.run();
    expect([world.state(late), await world.inRedis(late), world.state(missed)]).to.deep.equal([
      'open',
      'open',
      'draft',
    ]);
  });

  it('compares later sales in time even if some sales cannot be compared', async () => {
    const broken = new Set<string>();
    for (let i = 0; i < 10; i++) broken.add((await world.create()).saleId);
    const fine = await world.create({ closesAtMs: world.clock.nowMs() + 121 * MINUTE_MS });
    for (const minutes of [59.9, 70]) {
      advance(minutes);
      await world.run();
    }
    const compare = async (saleId: string): Promise<'match'> => {
      if (broken.has(saleId)) throw new OperationalError('redis', 'away', { retryable: true });
      world.compared.push(saleId);
      return 'match';
    };
    for (let runs = 0; runs < 2; runs++) await world.compare(compare).catch(() => undefined);
    expect(world.compared).to.deep.equal([fine.saleId]);
    broken.clear();
    advance(1);
    await world.compare(compare);
    expect(world.compared).to.have.length(11);
  });

  it('compares a sale with findings again later, until it matches', async () => {
    const sale = await world.create();
    advance(59.9);
    await world.run();
    await world.redis.deduct(batchOf(sale, purchasesOf('u1')));
    advance(70);
    await world.run();
    world.outcome = 'findings';
    await world.compare();
    await world.compare();
    expect(world.compared).to.have.length(1);
    advance(11);
    world.outcome = 'match';
    await world.compare();
    await world.compare();
    expect(world.compared).to.have.length(2);
    expect(world.audit(sale).at(-1)).to.equal('keeper sale.compared');
  });

  it('warns of no difference if Redis may have lost data, and compares again in a day', async () => {
    const sale = await world.create();
    advance(59.9);
    await world.run();
    await world.redis.deduct(batchOf(sale, purchasesOf('u1')));
    advance(70);
    await world.run();
    world.outcome = 'partly';
    await world.compare();
    advance(60);
    await world.compare();
    expect(world.compared, 'after an hour').to.have.length(1);
    expect(world.warned).to.deep.equal([]);
    advance(24 * 60);
    world.outcome = 'findings';
    await world.compare();
    expect(world.compared, 'after a day').to.have.length(2);
    expect(world.warned).to.deep.equal(['Redis and MySQL differ on a sale that has ended']);
  });
});

describe('sale plan', () => {
  it('shows the state of each coming sale and what the sale still lacks', async () => {
    const world = new ScheduleWorld();
    const minutes = (from: number, to: number) => ({
      opensAtMs: world.clock.nowMs() + from * MINUTE_MS,
      closesAtMs: world.clock.nowMs() + to * MINUTE_MS,
    });
    const names = {
      missed: await world.create(minutes(30, 49)),
      selling: await world.create(minutes(40, 200)),
      by_hand: await world.create({ ...minutes(45, 200), warmBeforeMs: null }),
      ready: await world.create(minutes(55, 200)),
      not_ready: await world.create(minutes(56, 200)),
      waits: await world.create(minutes(70, 200)),
    };
    world.clock.advance(31 * MINUTE_MS);
    await world.run();
    await world.admin.close(names.missed.saleId, 'bob'); // a closed sale is not listed
    const gone = await world.create({ ...minutes(-10, 15), warmBeforeMs: MINUTE_MS });
    world.clock.advance(19 * MINUTE_MS);
    await world.run();
    world.redis.bucket({ saleId: names.not_ready.saleId, bucket: 0 }).unitsLeft = 3;
    await world.create({
      opensAtMs: world.clock.nowMs() + 8 * 24 * 60 * MINUTE_MS,
      closesAtMs: world.clock.nowMs() * 2,
    });

    const planned = await world.plan();
    expect(planned.map(({ sale, status, missing }) => [sale.saleId, status, missing])).to.deep.equal([
      [gone.saleId, 'missed', []],
      [names.selling.saleId, 'selling', []],
      [names.by_hand.saleId, 'by_hand', []],
      [names.ready.saleId, 'ready', []],
      [names.not_ready.saleId, 'not_ready', ['stock: Redis has 3 units, but MySQL 10']],
      [names.waits.saleId, 'waits', []],
    ]);
  });
});

import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import type { NewSale, Sale, SaleState } from '../../src/core/sale.js';
import type { SaleSchedule } from '../../src/core/ports/sale-repository.js';
import { createSaleSchedule } from '../../src/mysql/sale-schedule.js';
import { MemorySaleSchedule } from '../helpers/memory/memory-sale-schedule.js';
import { memoryWorld, mysqlWorld, newSale, systemClock, type RepositoryWorld } from './repository-worlds.js';
import { onEachWorld } from './on-each-world.js';

const MINUTE_MS = 60_000;
const WORLDS = [
  [
    'memory',
    async () => {
      const world = await memoryWorld(systemClock);
      return { ...world, schedule: new MemorySaleSchedule(world.repositories, systemClock) };
    },
  ],
  [
    'mysql',
    async () => {
      const world = await mysqlWorld();
      return { ...world, schedule: createSaleSchedule(world.pool) };
    },
  ],
] as const;

onEachWorld<RepositoryWorld & { readonly schedule: SaleSchedule }>('contract SaleSchedule', WORLDS, (world) => {
  const MANY = 100_000;
  const idsOf = (found: readonly Sale[]): Set<string> => new Set(found.map(({ saleId }) => saleId));

  /** Creates a sale that opens and closes this many minutes from now, and warms up ten minutes earlier. */
  async function sale(opens: number, closes: number, state: SaleState, parts: Partial<NewSale> = {}): Promise<Sale> {
    const nowMs = Date.now();
    const window = { opensAtMs: nowMs + opens * MINUTE_MS, closesAtMs: nowMs + closes * MINUTE_MS };
    const made = await world.sales.create(newSale({ ...window, warmBeforeMs: 10 * MINUTE_MS, ...parts }));
    const way: SaleState[] = state === 'draft' ? [] : state === 'warm' ? ['warm'] : ['warm', 'open', state];
    for (const to of way) await world.sales.move(made.saleId, to);
    return (await world.sales.find(made.saleId)) as Sale;
  }

  /** Creates sales that are due in the same millisecond. */
  async function sameTime(): Promise<Sale[]> {
    const opensAtMs = Date.now() + MINUTE_MS;
    const made = [1, 2, 3, 4].map(() => sale(0, 0, 'draft', { opensAtMs, closesAtMs: opensAtMs + MINUTE_MS }));
    return Promise.all(made);
  }

  it('due: returns sales to warm, open or close, but no sale that an operator runs', async () => {
    const due = [
      await sale(9.9, 60, 'draft'),
      await sale(9.9, 60, 'warm'),
      await sale(-60, -0.1, 'open'),
      await sale(-60, -0.1, 'paused'),
      await sale(-60, -0.1, 'warm'),
      ...(await sameTime()),
    ];
    const later = [
      await sale(10.1, 60, 'draft'),
      await sale(10.1, 60, 'warm'),
      await sale(-60, 0.5, 'open'),
      await sale(-60, 0.5, 'paused'),
      await sale(-60, -0.1, 'draft'), // The window was missed.
      await sale(-60, -0.1, 'closed'),
      await sale(-60, -0.1, 'open', { warmBeforeMs: null }),
      await sale(5, 60, 'draft', { warmBeforeMs: null }),
    ];
    const found = await world.schedule.due(MANY);
    for (const { saleId } of due) expect([...idsOf(found)]).to.include(saleId);
    for (const { saleId } of later) expect([...idsOf(found)]).not.to.include(saleId);
    expect(found.find(({ saleId }) => saleId === due[0]?.saleId)).to.deep.equal(due[0]);
    const dueMs = ({ state, opensAtMs, closesAtMs, warmBeforeMs }: Sale): number =>
      state === 'draft' || state === 'warm' ? opensAtMs - (warmBeforeMs ?? 0) : closesAtMs;
    const times = found.map(dueMs);
    expect(times).to.deep.equal([...times].sort((a, b) => a - b));
    expect(await world.schedule.due(1)).to.have.length(1);
    const paged: Sale[] = [];
    for (let page = await world.schedule.due(3); page.length > 0; page = await world.schedule.due(3, paged.at(-1))) {
      paged.push(...page);
    }
    expect(paged.map(({ saleId }) => saleId)).to.deep.equal(
      (await world.schedule.due(MANY)).map(({ saleId }) => saleId),
    );
  });

  it('compared: marks a closed sale once with an audit entry, and never compares it again', async () => {
    const [over, recent, open, byHand] = [
      await sale(-60, -3, 'closed'),
      await sale(-60, -1, 'closed'),
      await sale(-60, -3, 'open'),
      await sale(-60, -3, 'closed', { warmBeforeMs: null }),
    ];
    const toCompare = async (): Promise<string[]> => [...idsOf(await world.schedule.toCompare(2 * MINUTE_MS, MANY))];
    expect(await toCompare()).to.include(over.saleId);
    for (const { saleId } of [recent, open, byHand]) expect(await toCompare()).not.to.include(saleId);

    await world.schedule.compareLater(over.saleId, MINUTE_MS);
    expect(await toCompare()).not.to.include(over.saleId);
    await world.schedule.compareLater(over.saleId, -1);
    expect(await toCompare()).to.include(over.saleId);

    const answers = await Promise.all([
      world.schedule.compared(over.saleId, 'keeper'),
      world.schedule.compared(over.saleId, 'keeper'),
    ]);
    expect(answers.filter(Boolean)).to.have.length(1);
    expect(await world.schedule.compared(open.saleId, 'keeper')).to.equal(false);
    expect(await toCompare()).not.to.include(over.saleId);
    const entries = (await world.auditOf(`sale:${over.saleId}`)).filter(({ action }) => action === 'sale.compared');
    expect(entries).to.deep.equal([
      {
        actor: 'keeper',
        action: 'sale.compared',
        subject: `sale:${over.saleId}`,
        before: { state: 'closed' },
        after: { state: 'closed', compared: 'match' },
      },
    ]);
  });

  it('coming: returns unclosed sales by opening time, and no sale that is over', async () => {
    const missed = await sale(-120, -60, 'draft');
    const wanted = [await sale(-60, 60, 'open'), await sale(1, 60, 'draft', { warmBeforeMs: null })];
    const other = [await sale(3, 60, 'draft'), await sale(-60, 60, 'closed')];
    const found = await world.schedule.coming(2 * MINUTE_MS, MANY);
    for (const { saleId } of wanted) expect([...idsOf(found)]).to.include(saleId);
    for (const { saleId } of other) expect([...idsOf(found)]).not.to.include(saleId);
    expect([...idsOf(found)]).to.include(missed.saleId);
    const isOver = ({ closesAtMs }: Sale): boolean => closesAtMs <= Date.now();
    const rest = found.filter((one) => !isOver(one));
    for (const some of [rest, found.filter(isOver)]) {
      const opens = some.map(({ opensAtMs }) => opensAtMs);
      expect(opens).to.deep.equal([...opens].sort((a, b) => a - b));
    }
    expect((await world.schedule.coming(2 * MINUTE_MS, rest.length)).filter(isOver)).to.deep.equal([]);
  });

  it('changes nothing and writes no audit entry if a move is based on an old state', async () => {
    const seen = await sale(5, 60, 'draft');
    const others = [
      { ...seen, state: 'warm' as const },
      { ...seen, epoch: 2 },
      { ...seen, opensAtMs: seen.opensAtMs + 1 },
      { ...seen, closesAtMs: seen.closesAtMs + 1 },
      { ...seen, warmBeforeMs: null },
    ];
    for (const other of others) {
      expect(await world.sales.move(seen.saleId, 'warm', 'keeper', other)).to.deep.equal({
        sale: seen,
        outcome: 'refused',
      });
    }
    const answers = await Promise.all([1, 2].map(() => world.sales.move(seen.saleId, 'warm', 'keeper', seen)));
    expect(answers.map((answer) => answer?.outcome).sort()).to.deep.equal(['moved', 'refused']);
    expect((await world.auditOf(`sale:${seen.saleId}`)).map(({ action }) => action)).to.deep.equal([
      'sale.created',
      'sale.warmed',
    ]);
  });

  it('createAll: creates all sales or no sale, in order, on a calendar of unclosed sales', async () => {
    const sku = `sku-${randomBytes(4).toString('hex')}`;
    const other = newSale();
    const first = await world.sales.create(newSale({ sku }));
    const closed = await world.sales.create(newSale({ sku }));
    for (const to of ['warm', 'open', 'closed'] as const) await world.sales.move(closed.saleId, to);
    const { saleId, opensAtMs, closesAtMs } = first;
    expect(await world.sales.calendar([sku, 'no-such-sku'])).to.deep.equal([{ saleId, sku, opensAtMs, closesAtMs }]);

    const refused = await world.sales.createAll([newSale({ sku }), other], 'ann', (calendar) => calendar);
    expect(refused).to.deep.equal({ wrong: [{ saleId, sku, opensAtMs, closesAtMs }] });
    expect(await world.sales.calendar([sku, other.sku])).to.have.length(1);

    const onlyOne = () => world.sales.createAll([other], 'ann', (calendar) => calendar);
    const made = await Promise.all([onlyOne(), onlyOne(), onlyOne()]);
    expect(made.filter((one) => 'created' in one)).to.have.length(1);
    const created = made.flatMap((one) => ('created' in one ? one.created : []));
    expect(created[0]).to.deep.include({ ...other, state: 'draft', sold: 0, epoch: 1 });
    expect(
      (await world.auditOf(`sale:${created[0]?.saleId}`)).map(({ actor, action }) => [actor, action]),
    ).to.deep.equal([['ann', 'sale.created']]);
  });
});

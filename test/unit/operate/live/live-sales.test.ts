import { expect } from 'chai';
import type { LiveSale } from '../../../../src/contract/live.js';
import { OperationalError } from '../../../../src/core/errors.js';
import type { AnswerCounts } from '../../../../src/core/ports/answer-history.js';
import type { SaleFilter } from '../../../../src/core/ports/sale-repository.js';
import type { StoredSale } from '../../../../src/core/ports/stock-store.js';
import type { Sale } from '../../../../src/core/sale.js';
import { LIVE_SALES_MAX, LiveSales } from '../../../../src/operate/live/live-sales.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryAnswerHistory } from '../../../helpers/memory/memory-answer-history.js';
import { saleOf } from '../../../helpers/sales.js';
import { partial } from '../../../helpers/partial.js';

const away = (what: 'redis' | 'mysql'): never => {
  throw new OperationalError(what, `${what} is away`, { retryable: true });
};

describe('live sales', () => {
  let clock: ManualClock;
  let history: MemoryAnswerHistory;
  let all: Sale[];
  let stored: Record<string, (Partial<StoredSale> | null)[]>;
  let pending: Record<string, [batches: number, oldestMs: number]>;
  let landed: Map<string, number>;
  let isDown: { list?: boolean; stock?: boolean; landed?: boolean };
  /** The buckets of every stock read. */
  let read: string[];
  let found: string[];
  let listed: SaleFilter[];
  let landedAsked: unknown[];
  let live: LiveSales;
  beforeEach(() => {
    clock = new ManualClock(Date.UTC(2030, 0, 1) + 400);
    history = new MemoryAnswerHistory(clock);
    [all, stored, pending, landed, isDown] = [[], {}, {}, new Map(), {}];
    [read, found, listed, landedAsked] = [[], [], [], []];
    live = new LiveSales({
      sales: partial({
        list: async (filter) => {
          if (isDown.list) away('mysql');
          listed.push(filter);
          return all.slice(0, filter.max);
        },
        find: async (saleId) => {
          found.push(saleId);
          return all.find((sale) => sale.saleId === saleId) ?? null;
        },
      }),
      stock: partial({
        readSale: async ({ saleId, bucket }) => {
          if (isDown.stock) away('redis');
          read.push(`${saleId}:${bucket}`);
          return (stored[saleId]?.[bucket] ?? null) as StoredSale | null;
        },
      }),
      batches: partial({
        pendingSummary: async ({ saleId, bucket }) => {
          const [batches, oldestMs] = pending[`${saleId}:${bucket}`] ?? [0, 0];
          return { batches, oldestMs };
        },
      }),
      answers: history,
      landed: partial({
        bySale: async (...asked) => {
          if (isDown.landed) away('mysql');
          landedAsked.push(asked);
          return landed;
        },
      }),
      clock,
    });
  });
  const sale = (saleId: string, parts: Partial<Sale> = {}): Sale =>
    saleOf({ saleId, stock: 100, ...parts }, clock.nowMs());
  const open = (unitsLeft: number): Partial<StoredSale> => ({ state: 'open', unitsLeft });
  const second = (ago: number): number => Math.floor(clock.nowMs() / 1000) * 1000 - ago * 1000;
  const heard = (ago: number, sales: Readonly<Record<string, AnswerCounts>>, others = 0): Promise<void> =>
    history.add(second(ago), { sales: new Map(Object.entries(sales)), others });
  const ids = async (): Promise<string[]> => (await live.look()).sales.map(({ saleId }) => saleId);

  it('show the units of all buckets and the answers and orders of the same second', async () => {
    all = [sale('7', { sold: 30, buckets: 2, title: 'A pen', sku: 'pen' })];
    stored = { 7: [open(40), open(20)] };
    pending = { '7:0': [2, 300], '7:1': [1, 900] };
    landed = new Map([['7', 12]]);
    await heard(2, { 7: { accepted: 9, replayed: 3, sold_out: 40, limit_reached: 1 } });
    await heard(1, { 7: { accepted: 1000 } });
    const { sales, moreSales, missing } = await live.look();
    const { opensAtMs, closesAtMs } = all[0] as Sale;
    expect(sales).to.deep.equal([
      {
        saleId: '7',
        title: 'A pen',
        sku: 'pen',
        state: 'open',
        stock: 100,
        sold: 30,
        held: 10,
        left: 60,
        buckets: 2,
        opensAtMs,
        closesAtMs,
        secondAtMs: second(2),
        acceptedPerSecond: 9,
        landedPerSecond: 12,
        refusedPerSecond: { sold_out: 40, limit_reached: 1 },
        pending: 3,
        pendingOldestMs: 900,
      } satisfies Omit<LiveSale, 'waiting'>,
    ]);
    expect([moreSales, missing]).to.deep.equal([0, []]);
    expect(landedAsked).to.deep.equal([[['7'], second(2), second(1)]]);
    expect(listed).to.deep.equal([{ states: ['warm', 'open', 'paused'], max: 100 }]);
  });

  it('show the answers of a sale as unknown while apis have too many sales to count', async () => {
    all = [sale('7'), sale('8')];
    landed = new Map([['8', 400]]);
    await heard(2, { 7: { accepted: 9, sold_out: 1 } }, 300);
    const rates = (await live.look()).sales.map((one) => [
      one.saleId,
      one.acceptedPerSecond,
      one.refusedPerSecond,
      one.landedPerSecond,
    ]);
    expect(rates).to.deep.equal([
      ['7', 9, { sold_out: 1 }, 0],
      ['8', null, null, 400],
    ]);
  });

  it('list busy sales first, then open, paused and warm sales', async () => {
    all = [
      sale('1', { state: 'warm', opensAtMs: 300 }),
      sale('7', { state: 'warm', opensAtMs: 400 }),
      sale('2', { state: 'paused' }),
      sale('3', { opensAtMs: 200 }),
      sale('4', { opensAtMs: 100 }),
      sale('5', { state: 'paused' }),
      sale('6', { state: 'warm' }),
    ];
    await heard(10, { 5: { paused: 2 } });
    await heard(3, { 6: { not_open: 1 } });
    await heard(12, { 1: { not_open: 1000 } });
    expect(await ids()).to.deep.equal(['5', '6', '3', '4', '2', '1', '7']);
  });

  it('show a limited number of sales and count the rest', async () => {
    all = Array.from({ length: LIVE_SALES_MAX + 3 }, (_, index) => sale(String(index + 1)));
    await heard(2, { [LIVE_SALES_MAX + 3]: { accepted: 1 } });
    const { sales, moreSales } = await live.look();
    expect(sales.length).to.equal(LIVE_SALES_MAX);
    expect(sales[0]?.saleId).to.equal(String(LIVE_SALES_MAX + 3));
    expect(moreSales).to.equal(3);
  });

  it('find a busy sale outside the newest hundred, and hide a sale that is over', async () => {
    all = Array.from({ length: 102 }, (_, index) => sale(String(index + 1)));
    all[101] = sale('102', { state: 'closed' });
    await heard(2, { 101: { accepted: 1 }, 102: { closed: 9 } });
    expect((await ids())[0]).to.equal('101');
    expect(found).to.have.members(['101', '102']);
    found = [];
    all = all.slice(0, 5);
    await ids();
    expect(found, 'all are listed').to.deep.equal([]);
  });

  it('show a sale in repair if Redis lost or rebuilds it, but not while it warms', async () => {
    all = [sale('1', { buckets: 2 }), sale('2'), sale('3', { state: 'warm' })];
    stored = { 1: [open(5), { state: 'repair', unitsLeft: 0 }] };
    const { sales } = await live.look();
    const shown = sales.map(({ saleId, state, left, held }) => [saleId, state, left, held]);
    expect(shown).to.deep.equal([
      ['1', 'repair', null, null],
      ['2', 'repair', null, null],
      ['3', 'warm', null, null],
    ]);
  });

  it('lose only the figures of a server that is down, and name the server', async () => {
    all = [sale('7', { sold: 3 })];
    stored = { 7: [open(97)] };
    isDown = { stock: true, landed: true };
    let { sales, missing } = await live.look();
    expect(sales[0]).to.include({ state: 'open', left: null, held: null, landedPerSecond: null, acceptedPerSecond: 0 });
    expect(missing).to.deep.equal(['mysql is away', 'redis is away']);
    isDown = {};
    history.down = true;
    ({ sales, missing } = await live.look());
    expect(sales[0]).to.include({ left: 97, acceptedPerSecond: null, refusedPerSecond: null, landedPerSecond: 0 });
    expect(missing).to.have.length(1);
    isDown = { list: true };
    ({ sales, missing } = await live.look());
    expect(sales).to.deep.equal([]);
    expect(missing).to.include('mysql is away');
  });

  it('read a limited number of buckets in turn, and keep the figures of other sales', async () => {
    all = Array.from({ length: 4 }, (_, index) => sale(String(index + 1), { buckets: 32 }));
    for (const { saleId } of all) stored[saleId] = Array.from({ length: 32 }, () => open(1));
    const lefts: (number | null)[][] = [];
    for (let look = 0; look < 3; look++) {
      read = [];
      lefts.push((await live.look()).sales.map(({ left }) => left));
      expect(read.length, `look ${look}`).to.equal(64);
      clock.advance(1000);
    }
    expect(lefts[0]?.filter((left) => left === null)).to.have.length(2);
    expect(lefts[1]).to.deep.equal([32, 32, 32, 32]);
    all = [sale('9', { buckets: 64 * 2 })];
    read = [];
    await live.look();
    expect(read.length, 'one sale is always read whole').to.equal(128);
  });
});

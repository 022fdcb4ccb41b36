import { expect } from 'chai';
import type { LiveSale, Sale, SaleSecond, Stage } from '../../../../web/console/api/types.js';
import { changesOf, isSame, listChange, valueAt, withValue } from '../../../../web/console/logic/diff.js';
import { largest } from '../../../../web/console/logic/largest.js';
import { actionsOn, may } from '../../../../web/console/logic/permissions.js';
import { localTimeField } from '../../../../web/console/logic/format.js';
import { saleEdit } from '../../../../web/console/logic/sale-edit.js';
import {
  chartData,
  mergedSeconds,
  readableStretch,
  secondOf,
  stretchOf,
  totalsOf,
  withHeard,
  withRead,
  type KnownSeconds,
} from '../../../../web/console/logic/sale-seconds.js';
import { namedIn, stageLines, tookMs } from '../../../../web/console/logic/time-line.js';

const BEGIN_MS = 1_800_000_000_000;

describe('difference between two documents', () => {
  const before = { mode: 'off', user: null, deny: ['a', 'b'], deep: { x: 1, y: 2 } };

  it('names each change by its path with both values', () => {
    const after = { mode: 'on', user: { limit: 3 }, deny: ['b', 'c'], deep: { x: 1 } };
    expect(changesOf(before, after)).to.deep.equal([
      { path: 'mode', before: 'off', after: 'on' },
      { path: 'user', before: null, after: { limit: 3 } },
      { path: 'deny', before: ['a', 'b'], after: ['b', 'c'] },
      { path: 'deep.y', before: 2, after: undefined },
    ]);
    expect(listChange(before.deny, after.deny)).to.deep.equal({ added: ['c'], removed: ['a'] });
  });

  it('is empty for equal documents, whatever the order of their names', () => {
    expect(changesOf(before, { deep: { y: 2, x: 1 }, deny: ['a', 'b'], user: null, mode: 'off' })).to.deep.equal([]);
    expect([isSame([1, 2], [2, 1]), isSame({ a: 1 }, { b: 1 }), isSame(null, {})]).to.deep.equal([false, false, false]);
  });

  it('sets a value by its path and leaves the original document unchanged', () => {
    const after = withValue(before, 'deep.z.w', 9);
    expect(valueAt(after, 'deep.z.w')).to.equal(9);
    expect(valueAt(after, 'deep.x')).to.equal(1);
    expect(valueAt(before, 'deep.z')).to.equal(undefined);
  });
});

describe('seconds of a sale', () => {
  const second = (at: number, won: number | null, landed = 0): SaleSecond => ({
    atMs: BEGIN_MS + at * 1000,
    won,
    landed,
    refused: won === null ? null : { sold_out: at, denied: 1 },
  });

  /** Reads this many seconds from the beginning. */
  const read = (length: number, ...seconds: SaleSecond[]): KnownSeconds =>
    withRead({ seconds: [], wholeToMs: BEGIN_MS }, { toMs: BEGIN_MS + length * 1000, seconds });

  it('are zero if the api left them out', () => {
    const data = chartData(read(5, second(1, 5, 4), second(3, 2, 3)), BEGIN_MS, BEGIN_MS + 5_000);
    expect(data.seconds).to.have.length(5);
    expect(data.won).to.deep.equal([0, 5, 0, 2, 0]);
    expect(data.landed).to.deep.equal([0, 4, 0, 3, 0]);
    expect(data.refused).to.deep.equal([0, 2, 0, 4, 0]);
  });

  it('are unknown if they are older than the api remembers', () => {
    const data = chartData(read(5, second(1, null, 4), second(3, 2, 3)), BEGIN_MS, BEGIN_MS + 5_000);
    expect(data.won).to.deep.equal([null, null, null, 2, 0]);
    expect(data.refused).to.deep.equal([null, null, null, 4, 0]);
    expect(data.landed).to.deep.equal([0, 4, 0, 3, 0]);
  });

  it('are not affected by a later second with unknown counts', () => {
    const data = chartData(read(5, second(0, 7), second(2, null, 4), second(4, 2)), BEGIN_MS, BEGIN_MS + 5_000);
    expect(data.won).to.deep.equal([7, 0, null, 0, 2]);
    expect(data.refused).to.deep.equal([1, 0, null, 0, 5]);
  });

  it('are unknown, not zero, if they were not read or lie ahead', () => {
    const known = [second(3, 0), second(5, 2)].reduce(withHeard, read(3, second(1, 5, 4)));
    const data = chartData(known, BEGIN_MS, BEGIN_MS + 7_000);
    expect(data.won).to.deep.equal([0, 5, 0, 0, null, 2, null]);
    expect(data.landed).to.deep.equal([0, 4, 0, 0, null, 0, null]);
    expect(data.refused).to.deep.equal([0, 2, 0, 4, null, 6, null]);
    expect(known.wholeToMs, 'read again from there on').to.equal(BEGIN_MS + 4_000);
  });

  it('are complete again once the missing seconds are read, even in parts', () => {
    const torn = [second(3, 0), second(5, 2), second(6, 1)].reduce(withHeard, read(3));
    const first = withRead(torn, { toMs: BEGIN_MS + 4_000, seconds: [] });
    expect(first.wholeToMs).to.equal(BEGIN_MS + 4_000);
    const whole = withRead(first, { toMs: BEGIN_MS + 5_000, seconds: [second(4, 8, 8)] });
    expect(whole.wholeToMs, 'later received seconds count').to.equal(BEGIN_MS + 7_000);
    expect(chartData(whole, BEGIN_MS, BEGIN_MS + 8_000).won).to.deep.equal([0, 0, 0, 0, 8, 2, 1, null]);
  });

  it('can be read up to the next snapshot', () => {
    const sale = { opensAtMs: BEGIN_MS, closesAtMs: BEGIN_MS + 600_000 };
    const nowMs = BEGIN_MS + 400_400;
    // src/operate/live/live-sales.ts: SECOND_AGO_MS
    expect(readableStretch('m5', sale, nowMs).toMs).to.equal(BEGIN_MS + 398_000);
    expect(stretchOf('m5', sale, nowMs).toMs).to.be.below(BEGIN_MS + 398_000);
  });

  it('are replaced, in order, if they are received again', () => {
    const merged = mergedSeconds([second(1, 1), second(2, 2)], [second(2, 9), second(0, 7)]);
    expect(merged.map(({ won }) => won)).to.deep.equal([7, 1, 9]);
    expect(mergedSeconds(merged, [], 2).map(({ won }) => won)).to.deep.equal([1, 9]);
  });

  it('add up to totals, a peak, and refusals by code', () => {
    const { words, ...totals } = totalsOf([second(1, 5, 4), second(2, 9, 9), second(3, null, 7)]);
    expect(totals).to.deep.equal({ won: 14, landed: 20, refused: 5, peak: 9 });
    expect(largest(words, 1)).to.deep.equal({ words: [['sold_out', 3]], others: 2 });
  });

  it('form a span up to now or the end, or from just before the opening', () => {
    const sale = { opensAtMs: BEGIN_MS, closesAtMs: BEGIN_MS + 600_000 };
    expect(stretchOf('m5', sale, BEGIN_MS + 400_400)).to.deep.equal({
      fromMs: BEGIN_MS + 95_000,
      toMs: BEGIN_MS + 395_000,
    });
    expect(stretchOf('m5', sale, BEGIN_MS + 9_000_000).toMs).to.equal(BEGIN_MS + 600_000);
    expect(stretchOf('opening', sale, BEGIN_MS + 9_000_000)).to.deep.equal({
      fromMs: BEGIN_MS - 15_000,
      toMs: BEGIN_MS + 285_000,
    });
  });

  it('leave out a snapshot with unknown rates', () => {
    const unknown = {
      secondAtMs: null,
      acceptedPerSecond: null,
      landedPerSecond: null,
      refusedPerSecond: null,
    } as LiveSale;
    expect(secondOf(unknown)).to.equal(null);
    expect(secondOf({ ...unknown, secondAtMs: BEGIN_MS, landedPerSecond: 3 })).to.deep.equal({
      atMs: BEGIN_MS,
      won: null,
      landed: 3,
      refused: null,
    });
  });
});

describe('input in the fields of a sale', () => {
  const sale = {
    title: 'A pen',
    stock: 10,
    priceCents: 1_999,
    closesAt: '2026-11-11T19:00:03.000Z',
    paymentWindow: null,
    state: 'draft',
  } as Sale;
  const typed = {
    title: 'A pen',
    stock: '10',
    closesAt: localTimeField(Date.parse(sale.closesAt)),
    paymentWindow: '',
    price: '19.99',
  };

  it('changes fields that differ, and keeps the seconds of an untouched time', () => {
    expect(saleEdit(sale, typed)).to.deep.equal({ change: {}, wrong: [] });
    const later = localTimeField(Date.parse('2026-11-11T20:30:00Z'));
    expect(
      saleEdit(sale, { title: 'Two pens', stock: '12', closesAt: later, paymentWindow: ' 5m ', price: '5' }),
    ).to.deep.equal({
      change: {
        title: 'Two pens',
        stock: 12,
        closesAt: '2026-11-11T20:30:00.000Z',
        paymentWindow: '5m',
        priceCents: 500,
      },
      wrong: [],
    });
    expect(saleEdit({ ...sale, state: 'open' }, { ...typed, price: '5' }).change).to.deep.equal({});
  });

  it('is invalid if a figure or a time is empty, and then changes nothing', () => {
    const empty = { title: 'A pen', stock: '', closesAt: '', paymentWindow: '', price: ' ' };
    expect(saleEdit(sale, empty)).to.deep.equal({ change: {}, wrong: ['stock', 'closesAt', 'price'] });
    for (const stock of ['0', '-1', '1.5', 'x'])
      expect(saleEdit(sale, { ...typed, stock }).wrong).to.deep.equal(['stock']);
    for (const paymentWindow of ['', 'soon'])
      expect(saleEdit({ ...sale, paymentWindow: '10m' }, { ...typed, paymentWindow }).wrong).to.deep.equal([
        'paymentWindow',
      ]);
    expect(saleEdit(sale, { ...typed, price: '-1' }).wrong).to.deep.equal(['price']);
    const yen = { ...sale, currency: 'JPY', priceCents: 1999 };
    expect(saleEdit(yen, { ...typed, price: '2500' }).change).to.deep.equal({ priceCents: 2500 });
    expect(saleEdit(yen, { ...typed, price: '19.99' }).wrong, 'yen have no digits').to.deep.equal(['price']);
  });
});

describe('timeline of a purchase', () => {
  const stage = (name: Stage['stage'], state: Stage['state'], second: number | null): Stage => ({
    stage: name,
    state,
    at: second === null ? null : new Date(BEGIN_MS + second * 1000).toISOString(),
    dueAt: null,
    text: '',
  });
  const timeline = [
    stage('half', 'done', 0),
    stage('deduct', 'unknown', null),
    stage('commit', 'done', 2),
    stage('delivery', 'waiting', null),
    stage('row', 'not_reached', null),
  ];

  it('shows the time between two known stages and the next stage', () => {
    const lines = stageLines(timeline);
    expect(lines.map(({ afterMs }) => afterMs)).to.deep.equal([null, null, 2_000, null, null]);
    expect(lines.filter(({ isNext }) => isNext).map(({ stage: name }) => name)).to.deep.equal(['delivery']);
    expect([tookMs(timeline), tookMs(timeline.slice(0, 1))]).to.deep.equal([2_000, null]);
  });

  it('continues from a failed stage, and ends when it is done', () => {
    expect(stageLines([stage('half', 'done', 0), stage('deduct', 'failed', 1)]).at(-1)?.isNext).to.equal(true);
    expect(stageLines([stage('half', 'done', 0)]).some(({ isNext }) => isNext)).to.equal(false);
  });

  it('names the order, the batch and the dead letters of its steps', () => {
    const step = (what: string, detail: string) => ({ at: null, source: 'mysql' as const, what, detail });
    const steps = [
      step('parked', 'dead letter 17: retries'),
      step('dead_letter', 'dead letter 17: parked'),
      step('recorded', 'order 72015: 1 for 250 cents EUR, batch x9QmT0yq4cM2nUo1bWv8kA'),
    ];
    expect(namedIn({ steps })).to.deep.equal({
      orderId: '72015',
      batchId: 'x9QmT0yq4cM2nUo1bWv8kA',
      deadLetterIds: ['17'],
    });
    expect(namedIn({ steps: [] })).to.deep.equal({ orderId: null, batchId: null, deadLetterIds: [] });
  });
});

describe('rights of a role', () => {
  it('include the rights of every lower role', () => {
    expect([
      may('viewer', 'operator'),
      may('operator', 'operator'),
      may('admin', 'operator'),
      may('operator', 'admin'),
    ]).to.deep.equal([false, true, true, false]);
  });

  it('depend on the state of a sale', () => {
    const open = { state: 'open', retiredAt: null } as const;
    expect(actionsOn(open, 'viewer')).to.deep.equal([]);
    expect(actionsOn(open, 'operator')).to.deep.equal(['pause', 'reshard', 'repair']);
    expect(actionsOn(open, 'admin')).to.deep.equal(['pause', 'edit', 'reshard', 'repair', 'close']);
    expect(actionsOn({ state: 'draft', retiredAt: null }, 'admin')).to.deep.equal(['warm', 'edit', 'delete']);
    expect(actionsOn({ state: 'closed', retiredAt: '2026-01-01T00:00:00.000Z' }, 'admin')).to.deep.equal(['void']);
    expect(actionsOn({ state: 'paused', retiredAt: null }, 'operator')).not.to.include('void');
  });
});

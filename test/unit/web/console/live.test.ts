import { expect } from 'chai';
import { ApiError } from '../../../../src/web/console/api/api-error.js';
import type { LiveSale, Snapshot } from '../../../../src/web/console/api/types.js';
import { backOffMs } from '../../../../src/web/console/logic/back-off.js';
import { EventStreamParser } from '../../../../src/web/console/logic/event-stream.js';
import { LiveStore, SECONDS_KEPT } from '../../../../src/web/console/logic/live-store.js';

const BEGIN_MS = 1_800_000_000_000;

const saleAt = (second: number, parts: Partial<LiveSale> = {}): LiveSale => ({
  saleId: '7',
  title: 'A pen',
  sku: 'pen',
  state: 'open',
  stock: 10,
  sold: 0,
  held: 0,
  left: 10,
  buckets: 1,
  opensAtMs: BEGIN_MS,
  closesAtMs: BEGIN_MS + 60_000,
  secondAtMs: BEGIN_MS + second * 1000,
  acceptedPerSecond: second,
  landedPerSecond: 0,
  refusedPerSecond: { sold_out: 2, limit_reached: 1 },
  pending: 0,
  pendingOldestMs: null,
  ...parts,
});
const snapshotOf = (second: number, ...sales: LiveSale[]): Snapshot => ({
  atMs: BEGIN_MS + second * 1000 + 2_000,
  sales,
  moreSales: 0,
  programs: [],
  conditions: [],
  missing: [],
});

describe('the live figures of the console', () => {
  it('are those of the last seconds, by sale and together, each second once', () => {
    const store = new LiveStore();
    for (const second of [1, 2, 2, 3]) {
      store.take(snapshotOf(second, saleAt(second), saleAt(second, { saleId: '8', acceptedPerSecond: 10 })), second);
    }
    expect(store.rates('7').accepted.slice(-4)).to.deep.equal([null, 1, 2, 3]);
    expect(store.rates('7').refused.slice(-2)).to.deep.equal([3, 3]);
    expect(store.rates(null).accepted.slice(-3)).to.deep.equal([11, 12, 13]);
    expect(store.rates('7').accepted).to.have.length(SECONDS_KEPT);
    expect(store.rates('none').accepted.every((value) => value === null)).to.equal(true);
  });

  it('keep a gap where rates were not known or no snapshot came', () => {
    const store = new LiveStore();
    store.take(snapshotOf(1, saleAt(1)), 1);
    store.take(snapshotOf(3, saleAt(3, { acceptedPerSecond: null, refusedPerSecond: null })), 3);
    store.take(snapshotOf(4, saleAt(4)), 4);
    expect(store.rates('7').accepted.slice(-4)).to.deep.equal([1, null, null, 4]);
    expect(store.rates(null).refused.slice(-4)).to.deep.equal([3, null, null, 3]);
  });

  it('forget a sale that is over, and seconds that are not shown', () => {
    const store = new LiveStore();
    for (let second = 1; second <= SECONDS_KEPT + 20; second++) store.take(snapshotOf(second, saleAt(second)), second);
    expect(store.rates('7').accepted[0]).to.equal(21);
    store.take(snapshotOf(2 * SECONDS_KEPT + 40, saleAt(2 * SECONDS_KEPT + 40, { saleId: '8' })), 0);
    expect(store.rates('7').accepted.every((value) => value === null)).to.equal(true);
  });

  it('stay in sight, as what was last known, while the connection is lost', () => {
    const store = new LiveStore();
    store.take(snapshotOf(1, saleAt(1)), 5);
    const trouble = new ApiError(0, 'unreachable', 'no answer');
    store.lost(trouble);
    store.connecting();
    expect(store.state.value).to.include({ connection: 'lost', trouble, receivedMs: 5 });
    store.take(snapshotOf(2, saleAt(2)), 6);
    expect(store.state.value).to.include({ connection: 'open', trouble: null, receivedMs: 6 });
  });

  it('a lost stream is asked for again at growing pauses, spread, of half a minute at most', () => {
    expect([1, 2, 3, 4].map((failures) => backOffMs(failures, 1))).to.deep.equal([1_000, 2_000, 4_000, 8_000]);
    expect(backOffMs(50, 1)).to.equal(30_000);
    expect(backOffMs(3, 0)).to.equal(3_000);
  });
});

describe('reading a stream of events', () => {
  const TEXT =
    ': hello\r\n\r\nevent: snapshot\ndata: {"a":1}\n\nretry: 5\nid: 7\ndata:one\ndata: two\n\nevent: empty\n\n';
  const EVENTS = [
    { event: 'snapshot', data: '{"a":1}' },
    { event: 'message', data: 'one\ntwo' },
  ];

  it('gives the events that have ended, without comments', () => {
    expect(new EventStreamParser().push(TEXT)).to.deep.equal(EVENTS);
  });

  it('does not depend on where the pieces were cut', () => {
    for (let size = 1; size <= 9; size++) {
      const parser = new EventStreamParser();
      const found = [];
      for (let at = 0; at < TEXT.length; at += size) found.push(...parser.push(TEXT.slice(at, at + size)));
      expect(found, `pieces of ${size}`).to.deep.equal(EVENTS);
    }
  });
});

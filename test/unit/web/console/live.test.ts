import { expect } from 'chai';
import sinon from 'sinon';
import { ApiError } from '../../../../web/console/api/api-error.js';
import { followLive, type Streams } from '../../../../web/console/api/live-feed.js';
import type { LiveSale, Snapshot } from '../../../../web/console/api/types.js';
import { LiveStore, SECONDS_KEPT } from '../../../../web/console/logic/live-store.js';
import { pause } from '../../../../src/core/after.js';

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
  waiting: null,
  ...parts,
});
const snapshotOf = (second: number, ...sales: LiveSale[]): Snapshot => ({
  atMs: BEGIN_MS + second * 1000 + 2_000,
  everyMs: 1_000,
  sales,
  moreSales: 0,
  programs: [],
  conditions: [],
  missing: [],
});

describe('live figures of the console', () => {
  it('cover the last seconds, by sale and in total, each second once', () => {
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

  it('keep a gap if rates were unknown or no snapshot arrived', () => {
    const store = new LiveStore();
    store.take(snapshotOf(1, saleAt(1)), 1);
    store.take(snapshotOf(3, saleAt(3, { acceptedPerSecond: null, refusedPerSecond: null })), 3);
    store.take(snapshotOf(4, saleAt(4)), 4);
    expect(store.rates('7').accepted.slice(-4)).to.deep.equal([1, null, null, 4]);
    expect(store.rates(null).refused.slice(-4)).to.deep.equal([3, null, null, 3]);
  });

  it('forget a finished sale and seconds out of view', () => {
    const store = new LiveStore();
    for (let second = 1; second <= SECONDS_KEPT + 20; second++) store.take(snapshotOf(second, saleAt(second)), second);
    expect(store.rates('7').accepted[0]).to.equal(21);
    store.take(snapshotOf(2 * SECONDS_KEPT + 40, saleAt(2 * SECONDS_KEPT + 40, { saleId: '8' })), 0);
    expect(store.rates('7').accepted.every((value) => value === null)).to.equal(true);
  });

  it('keep the last known values while the connection is lost', () => {
    const store = new LiveStore();
    store.take(snapshotOf(1, saleAt(1)), 5);
    const trouble = new ApiError(0, 'unreachable', 'no answer');
    store.lost(trouble);
    store.connecting();
    expect(store.state.value).to.include({ connection: 'lost', trouble, receivedMs: 5 });
    store.take(snapshotOf(2, saleAt(2)), 6);
    expect(store.state.value).to.include({ connection: 'open', trouble: null, receivedMs: 6 });
  });
});

describe('stream of live figures', () => {
  const SNAPSHOT = { event: 'snapshot', id: null, data: JSON.stringify(snapshotOf(1, saleAt(1))) };
  let clock: sinon.SinonFakeTimers;
  let ending: AbortController;
  let following: Promise<void>;
  /** Time of each request for a stream since the first request, ms. */
  let askedMs: number[];
  beforeEach(() => {
    clock = sinon.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    sinon.stub(Math, 'random').returns(0);
    askedMs = [];
    ending = new AbortController();
  });
  afterEach(async () => {
    ending.abort();
    await clock.runAllAsync();
    await following;
  });
  const follow = (lastsMs: number, retryMs: number | null = null, network = new EventTarget()): LiveStore => {
    const store = new LiveStore();
    const api: Streams = {
      async *events(_path, _call, parser) {
        askedMs.push(performance.now());
        parser.retryMs = retryMs;
        for (let atMs = 0; atMs <= lastsMs; atMs += 1_000) {
          yield SNAPSHOT;
          if (atMs < lastsMs) await pause(1_000);
        }
      },
    };
    following = followLive(api, store, network, ending.signal);
    return store;
  };
  const pausesMs = (lastsMs: number): number[] =>
    askedMs.slice(1).map((atMs, index) => atMs - (askedMs[index] as number) - lastsMs);

  it('is reopened after a pause, even after a normal end', async () => {
    follow(20_000);
    await clock.tickAsync(70_000);
    expect(pausesMs(20_000)).to.deep.equal([250, 250, 250]);
  });

  it('waits as long as the api asks', async () => {
    follow(20_000, 2_000);
    await clock.tickAsync(50_000);
    expect(pausesMs(20_000)).to.deep.equal([2_000, 2_000]);
  });

  it('is requested after growing pauses if it never lasts', async () => {
    follow(0);
    await clock.tickAsync(9_000);
    expect(pausesMs(0)).to.deep.equal([250, 500, 1_000, 2_000, 4_000]);
  });

  it('is requested at once when the network returns', async () => {
    const network = new EventTarget();
    follow(0, 60_000, network);
    await clock.tickAsync(1_000);
    network.dispatchEvent(new Event('online'));
    await clock.tickAsync(0);
    expect(askedMs).to.deep.equal([0, 1_000]);
  });
});

import { expect } from 'chai';
import { OperationalError } from '../../../src/core/errors.js';
import type { Sale } from '../../../src/core/sale.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemorySaleSnapshotCache } from '../../helpers/memory/memory-sale-snapshot-cache.js';
import { saleOf } from '../../helpers/sales.js';
import { partial } from '../../helpers/partial.js';

const MEMORY_MS = 1000;
const CACHE_MS = 5000;
const LOCK_MS = 3000;

/** Above every id of these tests except the invented ones. */
const NEWEST = '800000000000000000';
const invented = (nth: number): string => `9000000000000${String(nth).padStart(5, '0')}`;

describe('sale snapshots', () => {
  let clock: ManualClock;
  let cache: MemorySaleSnapshotCache;
  let sale: Sale | null;
  let repositoryReads: number;
  let newestReads: number;
  let repositoryFails: boolean;
  /** Delays the answer of MySQL. */
  let repositoryTakes: () => Promise<unknown>;

  beforeEach(() => {
    clock = new ManualClock();
    cache = new MemorySaleSnapshotCache(clock, { ttlMs: CACHE_MS });
    sale = saleOf();
    repositoryReads = 0;
    newestReads = 0;
    repositoryFails = false;
    repositoryTakes = async () => undefined;
  });

  /** Creates the snapshots of one process. */
  const process = (memoryMax = 10): SaleSnapshots => {
    const find = async (saleId: string): Promise<Sale | null> => {
      repositoryReads++;
      await repositoryTakes();
      if (repositoryFails) throw new Error('MySQL is away');
      return sale?.saleId === saleId ? sale : null;
    };
    const newestId = async (): Promise<string> => {
      newestReads++;
      if (repositoryFails) throw new OperationalError('mysql', 'MySQL is away', { retryable: true });
      return NEWEST;
    };
    return new SaleSnapshots(
      { repository: partial({ find, newestId }), cache, clock },
      { memoryTtlMs: MEMORY_MS, memoryMax, lockMs: LOCK_MS },
    );
  };
  const saleId = (): string => (sale as Sale).saleId;

  it('reads a dropped snapshot from MySQL again, in every process', async () => {
    const [one, two] = [process(), process()];
    await one.get(saleId());
    sale = { ...(sale as Sale), buckets: 8, epoch: 2 };
    await one.forget(saleId());
    expect(one.peek(saleId())).to.equal(undefined);
    expect(await one.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(await two.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(repositoryReads).to.equal(2);
  });

  it('loads once from MySQL, then from the cache, then from memory', async () => {
    const [one, two] = [process(), process()];
    expect(await one.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(await two.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    const reads = cache.reads;
    expect(one.get(saleId()), 'from memory, without a promise').to.deep.equal({ snapshot: 'ready', sale });
    expect([repositoryReads, cache.reads - reads]).to.deep.equal([1, 0]);
  });

  it('reads only memory with peek', async () => {
    const snapshots = process();
    expect(snapshots.peek(saleId())).to.equal(undefined);
    await snapshots.get(saleId());
    expect(snapshots.peek(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(repositoryReads).to.equal(1);
  });

  it('remembers not_found, so that many reads of a wrong id cost one query', async () => {
    const [one, two] = [process(), process()];
    for (const snapshots of [one, one, two])
      expect(await snapshots.get('404')).to.deep.equal({ snapshot: 'not_found' });
    expect(repositoryReads).to.equal(1);
  });

  it('does not show a draft that an operator runs', async () => {
    sale = saleOf({ state: 'draft', warmBeforeMs: null });
    expect(await process().get(saleId())).to.deep.equal({ snapshot: 'not_found' });
  });

  it('announces a draft that the keeper runs, until it is warm or deleted', async () => {
    sale = saleOf({ state: 'draft', warmBeforeMs: 60_000 });
    const snapshots = process();
    const announced = { snapshot: 'announced', sale };
    for (let nth = 0; nth < 100; nth++) expect(await snapshots.get(saleId())).to.deep.equal(announced);
    expect([repositoryReads, snapshots.peek(saleId())]).to.deep.equal([1, announced]);
    const draft = sale;
    sale = { ...draft, state: 'warm' };
    clock.advance(CACHE_MS);
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    sale = draft;
    await snapshots.forget(saleId());
    expect(await snapshots.get(saleId())).to.deep.equal(announced);
    sale = null;
    clock.advance(CACHE_MS);
    expect(await snapshots.get(draft.saleId)).to.deep.equal({ snapshot: 'not_found' });
  });

  it('shows a change when memory expires if the cache was dropped', async () => {
    const snapshots = process();
    await snapshots.get(saleId());
    sale = { ...(sale as Sale), title: 'changed' };
    await cache.forget(saleId());
    clock.advance(MEMORY_MS - 1);
    expect(await snapshots.get(saleId())).to.have.nested.property('sale.title', 'A thing');
    clock.advance(2);
    expect(await snapshots.get(saleId())).to.have.nested.property('sale.title', 'changed');
  });

  it('shows a change when the cache expires if the cache was not dropped', async () => {
    const snapshots = process();
    await snapshots.get(saleId());
    sale = { ...(sale as Sale), title: 'changed' };
    clock.advance(CACHE_MS);
    expect(await snapshots.get(saleId())).to.have.nested.property('sale.title', 'changed');
  });

  it('shares one load between a thousand reads in one process', async () => {
    const snapshots = process();
    const found = await Promise.all(Array.from({ length: 1000 }, () => snapshots.get(saleId())));
    expect(new Set(found).size).to.equal(1);
    expect([repositoryReads, cache.reads]).to.deep.equal([1, 1]);
  });

  it('lets a single process read MySQL while other processes wait for its snapshot', async () => {
    const processes = Array.from({ length: 8 }, () => process());
    let release: () => void = () => undefined;
    repositoryTakes = () => new Promise<void>((resolve) => (release = resolve));
    const asked = Promise.all(processes.map((snapshots) => snapshots.get(saleId())));
    while (repositoryReads === 0) await new Promise((resolve) => setImmediate(resolve));
    release();
    expect(await asked).to.deep.equal(processes.map(() => ({ snapshot: 'ready', sale })));
    expect(repositoryReads).to.equal(1);
  });

  it('answers `loading` after a limited wait in vain, and tries again on the next read', async () => {
    await cache.lock(saleId(), LOCK_MS);
    const snapshots = process();
    const startedMs = clock.nowMs();
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'loading' });
    expect(clock.nowMs() - startedMs).to.equal(200);
    expect(snapshots.peek(saleId()), 'not cached').to.equal(undefined);
    await cache.write(saleId(), sale);
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(repositoryReads).to.equal(0);
  });

  it('lets a lock expire by itself if its holder died', async () => {
    await cache.lock(saleId(), LOCK_MS);
    clock.advance(LOCK_MS);
    expect(await process().get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
  });

  it('rejects for every waiting caller if a load fails', async () => {
    const snapshots = process();
    repositoryFails = true;
    const asked = [snapshots.get(saleId()), snapshots.get(saleId())] as Promise<unknown>[];
    const messages = await Promise.all(asked.map((ask) => ask.catch((error: Error) => error.message)));
    expect(messages).to.deep.equal(['MySQL is away', 'MySQL is away']);
    repositoryFails = false;
    clock.advance(LOCK_MS);
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
  });

  it('serves known sales from memory in a cache outage, and throws for other sales [R8]', async () => {
    const snapshots = process();
    await snapshots.get(saleId());
    cache.down = true;
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    clock.advance(MEMORY_MS + 1);
    expect(await snapshots.get(saleId()), 'old, and still true').to.deep.equal({ snapshot: 'ready', sale });
    expect(snapshots.peek(saleId()), 'kept in memory again').to.deep.equal({ snapshot: 'ready', sale });
    const failed = await Promise.resolve(process().get(saleId())).catch((error: unknown) => error);
    expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
  });

  it('serves a cached sale without a long wait while MySQL is down or hangs [D1, D2]', async () => {
    const snapshots = process();
    await snapshots.get(saleId());
    clock.advance(CACHE_MS);
    repositoryTakes = () => new Promise(() => undefined);
    const startedMs = clock.nowMs();
    expect(await snapshots.get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
    expect(clock.nowMs() - startedMs, 'ms').to.equal(100);
    expect(snapshots.get(saleId()), 'then from memory').to.deep.equal({ snapshot: 'ready', sale });
  });

  it('shares one read and one wait between many callers of an old snapshot', async () => {
    const snapshots = process();
    await snapshots.get(saleId());
    clock.advance(MEMORY_MS + 1);
    const reads = cache.reads;
    const asked = Array.from({ length: 1000 }, () => snapshots.get(saleId()));
    expect(new Set(asked).size, 'promises').to.equal(1);
    expect(await asked[0]).to.deep.equal({ snapshot: 'ready', sale });
    expect(cache.reads - reads).to.equal(1);
    clock.advance(MEMORY_MS + 1);
    expect(await snapshots.get(saleId()), 'the next snapshot is read again').to.deep.equal({ snapshot: 'ready', sale });
    expect(cache.reads - reads).to.equal(2);
  });

  it('lets `not_found` expire', async () => {
    const wanted = sale;
    const snapshots = process();
    sale = null;
    const { saleId: id } = wanted as Sale;
    expect(await snapshots.get(id)).to.deep.equal({ snapshot: 'not_found' });
    sale = wanted;
    await cache.forget(id);
    clock.advance(MEMORY_MS + 1);
    expect(await snapshots.get(id)).to.deep.equal({ snapshot: 'ready', sale });
  });

  it('keeps a limited number of snapshots in memory', async () => {
    const snapshots = process(1);
    await snapshots.get(saleId());
    const first = saleId();
    sale = saleOf();
    await snapshots.get(saleId());
    expect([snapshots.peek(first), snapshots.peek(saleId())]).to.deep.equal([undefined, { snapshot: 'ready', sale }]);
  });

  it('evicts no snapshot to make room for ids without a sale', async () => {
    const snapshots = process(1);
    await snapshots.get(saleId());
    for (let nth = 1; nth <= 100; nth++) await snapshots.get(String(nth));
    expect(snapshots.peek(saleId())).to.deep.equal({ snapshot: 'ready', sale });
  });

  it('answers a thousand invented ids at once with one query', async () => {
    const snapshots = process();
    const ids = Array.from({ length: 1000 }, (_, nth) => invented(nth));
    const found = await Promise.all(ids.map((id) => snapshots.get(id)));
    expect(new Set(found.map(({ snapshot }) => snapshot))).to.deep.equal(new Set(['not_found']));
    expect([newestReads, repositoryReads, cache.reads]).to.deep.equal([1, 0, 0]);
  });

  it('limits invented ids that arrive one by one to fifty queries a second', async () => {
    const snapshots = process();
    const startedMs = clock.monotonicMs();
    for (let nth = 0; nth < 100; nth++) await snapshots.get(invented(nth));
    expect(newestReads / (clock.monotonicMs() - startedMs)).to.be.at.most(100 / 1980);
    expect([repositoryReads, cache.reads]).to.deep.equal([0, 0]);
  });

  it('reads a sale from the cache while MySQL is down', async () => {
    sale = saleOf({ saleId: invented(1) });
    await cache.write(saleId(), sale);
    repositoryFails = true;
    expect(await process().get(saleId())).to.deep.equal({ snapshot: 'ready', sale });
  });
});

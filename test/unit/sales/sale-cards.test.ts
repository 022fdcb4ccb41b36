import { expect } from 'chai';
import type { Sale } from '../../../src/core/sale.js';
import { SaleCards } from '../../../src/sales/sale-cards.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemorySaleCardCache } from '../../helpers/memory/memory-sale-card-cache.js';
import { saleOf } from '../../helpers/sales.js';

const MEMORY_MS = 1000;
const CACHE_MS = 5000;
const LOCK_MS = 3000;

describe('sale cards', () => {
  let clock: ManualClock;
  let cache: MemorySaleCardCache;
  let sale: Sale | null;
  let bookReads: number;
  let bookFails: boolean;
  /** What the book waits for before it answers. */
  let bookTakes: () => Promise<unknown>;

  beforeEach(() => {
    clock = new ManualClock();
    cache = new MemorySaleCardCache(clock, { ttlMs: CACHE_MS });
    sale = saleOf();
    bookReads = 0;
    bookFails = false;
    bookTakes = async () => undefined;
  });

  /** The cards of one process. */
  const process = (memoryMax = 10): SaleCards => {
    const find = async (saleId: string): Promise<Sale | null> => {
      bookReads++;
      await bookTakes();
      if (bookFails) throw new Error('the book is away');
      return sale?.saleId === saleId ? sale : null;
    };
    return new SaleCards({ book: { find }, cache, clock }, { memoryTtlMs: MEMORY_MS, memoryMax, lockMs: LOCK_MS });
  };
  const saleId = (): string => (sale as Sale).saleId;

  it('a card that is forgotten is read from the book again by whoever asks next, in every process', async () => {
    const [one, two] = [process(), process()];
    await one.get(saleId());
    sale = { ...(sale as Sale), buckets: 8, epoch: 2 };
    await one.forget(saleId());
    expect(one.peek(saleId())).to.equal(undefined);
    expect(await one.get(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(await two.get(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(bookReads).to.equal(2);
  });

  it('(P1 READY) loads once from the book, then from the cache, then from memory', async () => {
    const [one, two] = [process(), process()];
    expect(await one.get(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(await two.get(saleId())).to.deep.equal({ card: 'ready', sale });
    const reads = cache.reads;
    expect(one.get(saleId()), 'from memory, without a promise').to.deep.equal({ card: 'ready', sale });
    expect([bookReads, cache.reads - reads]).to.deep.equal([1, 0]);
  });

  it('peek knows what memory has, and asks nobody', async () => {
    const cards = process();
    expect(cards.peek(saleId())).to.equal(undefined);
    await cards.get(saleId());
    expect(cards.peek(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(bookReads).to.equal(1);
  });

  it('(P1 NOT_FOUND) is remembered too: a crowd on a wrong id costs one read', async () => {
    const [one, two] = [process(), process()];
    for (const cards of [one, one, two]) expect(await cards.get('404')).to.deep.equal({ card: 'not_found' });
    expect(bookReads).to.equal(1);
  });

  it('a draft is shown to nobody', async () => {
    sale = saleOf({ state: 'draft' });
    expect(await process().get(saleId())).to.deep.equal({ card: 'not_found' });
  });

  it('a change is seen at the latest when memory has forgotten, and the cache was told', async () => {
    const cards = process();
    await cards.get(saleId());
    sale = { ...(sale as Sale), title: 'changed' };
    await cache.forget(saleId());
    clock.advance(MEMORY_MS - 1);
    expect(await cards.get(saleId())).to.have.nested.property('sale.title', 'A thing');
    clock.advance(2);
    expect(await cards.get(saleId())).to.have.nested.property('sale.title', 'changed');
  });

  it('a change is seen after the life of the cache when nobody told it', async () => {
    const cards = process();
    await cards.get(saleId());
    sale = { ...(sale as Sale), title: 'changed' };
    clock.advance(CACHE_MS);
    expect(await cards.get(saleId())).to.have.nested.property('sale.title', 'changed');
  });

  it('single flight: a thousand askers in one process are one load', async () => {
    const cards = process();
    const found = await Promise.all(Array.from({ length: 1000 }, () => cards.get(saleId())));
    expect(new Set(found).size).to.equal(1);
    expect([bookReads, cache.reads]).to.deep.equal([1, 1]);
  });

  it('lock: however many processes ask at once, one reads the book, the others wait for its card', async () => {
    const processes = Array.from({ length: 8 }, () => process());
    let release: () => void = () => undefined;
    bookTakes = () => new Promise<void>((resolve) => (release = resolve));
    const asked = Promise.all(processes.map((cards) => cards.get(saleId())));
    while (bookReads === 0) await new Promise((resolve) => setImmediate(resolve));
    release();
    expect(await asked).to.deep.equal(processes.map(() => ({ card: 'ready', sale })));
    expect(bookReads).to.equal(1);
  });

  it('(P1 LOADING) who waits in vain hears `loading`, after a bounded wait, and looks again next time', async () => {
    await cache.lock(saleId(), LOCK_MS);
    const cards = process();
    const startedMs = clock.nowMs();
    expect(await cards.get(saleId())).to.deep.equal({ card: 'loading' });
    expect(clock.nowMs() - startedMs).to.equal(200);
    expect(cards.peek(saleId()), 'not kept').to.equal(undefined);
    await cache.write(saleId(), sale);
    expect(await cards.get(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(bookReads).to.equal(0);
  });

  it('a lock whose holder died ends by itself', async () => {
    await cache.lock(saleId(), LOCK_MS);
    clock.advance(LOCK_MS);
    expect(await process().get(saleId())).to.deep.equal({ card: 'ready', sale });
  });

  it('a failed load is heard by all who wait for it, and is tried again by the next', async () => {
    const cards = process();
    bookFails = true;
    const asked = [cards.get(saleId()), cards.get(saleId())] as Promise<unknown>[];
    const heard = await Promise.all(asked.map((ask) => ask.catch((error: Error) => error.message)));
    expect(heard).to.deep.equal(['the book is away', 'the book is away']);
    bookFails = false;
    clock.advance(LOCK_MS);
    expect(await cards.get(saleId())).to.deep.equal({ card: 'ready', sale });
  });

  it('R8 a cache that is away is a fault for who knows nothing; what memory has is still served', async () => {
    const cards = process();
    await cards.get(saleId());
    cache.down = true;
    expect(await cards.get(saleId())).to.deep.equal({ card: 'ready', sale });
    clock.advance(MEMORY_MS + 1);
    expect(await cards.get(saleId()), 'old, and still true').to.deep.equal({ card: 'ready', sale });
    expect(cards.peek(saleId()), 'believed again for its time').to.deep.equal({ card: 'ready', sale });
    const failed = await Promise.resolve(process().get(saleId())).catch((error: unknown) => error);
    expect(failed).to.include({ name: 'OperationalError', dependency: 'redis' });
  });

  it('D1 D2 while the book is out or hangs a known sale goes on, and nobody waits long', async () => {
    const cards = process();
    await cards.get(saleId());
    clock.advance(CACHE_MS);
    bookTakes = () => new Promise(() => undefined);
    const startedMs = clock.nowMs();
    expect(await cards.get(saleId())).to.deep.equal({ card: 'ready', sale });
    expect(clock.nowMs() - startedMs, 'ms').to.equal(100);
    expect(cards.get(saleId()), 'then from memory').to.deep.equal({ card: 'ready', sale });
  });

  it('a card that says no such sale is not believed beyond its time', async () => {
    const wanted = sale;
    const cards = process();
    sale = null;
    const { saleId: id } = wanted as Sale;
    expect(await cards.get(id)).to.deep.equal({ card: 'not_found' });
    sale = wanted;
    await cache.forget(id);
    clock.advance(MEMORY_MS + 1);
    expect(await cards.get(id)).to.deep.equal({ card: 'ready', sale });
  });

  it('memory holds so many cards and no more', async () => {
    const cards = process(2);
    for (const id of ['1', '2', '3']) await cards.get(id);
    expect([cards.peek('1'), cards.peek('2')?.card, cards.peek('3')?.card]).to.deep.equal([
      undefined,
      'not_found',
      'not_found',
    ]);
  });
});

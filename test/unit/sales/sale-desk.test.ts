import { expect } from 'chai';
import type { NewSale, Sale, SaleState } from '../../../src/core/sale.js';
import { SaleDesk } from '../../../src/sales/sale-desk.js';
import { ManualClock } from '../../helpers/memory/manual-clock.js';
import { MemoryBooks } from '../../helpers/memory/memory-books.js';
import { MemoryLedger } from '../../helpers/memory/memory-ledger.js';
import { MemorySaleCardCache } from '../../helpers/memory/memory-sale-card-cache.js';
import { batchOf, purchasesOf, saleOf } from '../../helpers/sales.js';

describe('sale desk', () => {
  let clock: ManualClock;
  let books: MemoryBooks;
  let ledger: MemoryLedger;
  let cache: MemorySaleCardCache;
  let desk: SaleDesk;

  beforeEach(() => {
    clock = new ManualClock();
    books = new MemoryBooks({ clock });
    ledger = new MemoryLedger({ clock });
    cache = new MemorySaleCardCache(clock, { ttlMs: 60_000 });
    desk = new SaleDesk({ book: books, ledger, cache });
  });

  const newSale = (parts: Partial<NewSale> = {}): NewSale => {
    const { sku, title, priceCents, stock, limitPerBuyer, buckets, opensAtMs, closesAtMs } = saleOf(
      parts,
      clock.nowMs(),
    );
    return { sku, title, priceCents, stock, limitPerBuyer, buckets, opensAtMs, closesAtMs };
  };
  const inLedger = async ({ saleId }: Sale) => {
    const found = await ledger.readSale({ saleId, bucket: 0 });
    return found && [found.state, found.unitsLeft];
  };
  const inBook = async ({ saleId }: Sale): Promise<SaleState | undefined> => (await desk.show(saleId))?.state;

  it('takes a sale through its life: draft → warm → open ⇄ paused → closed; the ledger follows', async () => {
    const sale = await desk.create(newSale({ stock: 5 }), 'ann');
    expect([sale.state, await inLedger(sale)]).to.deep.equal(['draft', null]);
    for (const [move, state] of [
      ['warm', 'warm'],
      ['open', 'open'],
      ['pause', 'paused'],
      ['open', 'open'],
      ['close', 'closed'],
    ] as const) {
      const answer = await desk[move](sale.saleId, 'ann');
      expect(answer).to.deep.include({ outcome: 'done' });
      expect('sale' in answer && answer.sale.state).to.equal(state);
      expect([await inBook(sale), await inLedger(sale)]).to.deep.equal([state, [state, 5]]);
    }
  });

  it('every move, a repeat too, is audited under the name of its actor; a refused one is not', async () => {
    const sale = await desk.create(newSale(), 'ann');
    await desk.open(sale.saleId, 'eve'); // not warmed yet: refused
    await desk.warm(sale.saleId, 'ann');
    for (const move of ['open', 'pause', 'open', 'open', 'close'] as const) await desk[move](sale.saleId, 'bob');
    expect(books.audited.map(({ actor, action }) => `${actor} ${action}`)).to.deep.equal([
      ...['ann sale.created', 'ann sale.warmed', 'bob sale.opened', 'bob sale.paused'],
      ...['bob sale.resumed', 'bob sale.opened', 'bob sale.closed'],
    ]);
    expect(books.audited[0]).to.deep.include({ subject: `sale:${sale.saleId}`, before: null, after: sale });
    expect(books.audited.at(-1)).to.deep.include({ before: { state: 'open' }, after: { state: 'closed' } });
  });

  it('every move may be repeated', async () => {
    const sale = await desk.create(newSale(), 'ann');
    for (const move of ['warm', 'warm', 'open', 'open', 'pause', 'pause', 'close', 'close'] as const) {
      expect((await desk[move](sale.saleId, 'ann')).outcome, move).to.equal('done');
    }
  });

  it('a move that is not allowed changes nothing, in the book or in the ledger', async () => {
    const forbidden: Record<string, ('warm' | 'open' | 'pause' | 'close')[]> = {
      draft: ['open', 'pause', 'close'],
      warm: ['pause'],
      open: ['warm'],
      paused: ['warm'],
      closed: ['warm', 'open', 'pause'],
    };
    for (const [state, moves] of Object.entries(forbidden)) {
      const sale = saleOf({ state: state as SaleState });
      books.putSale(sale);
      if (state !== 'draft') await ledger.warm(sale);
      for (const move of moves) {
        expect((await desk[move](sale.saleId, 'ann')).outcome, `${state}: ${move}`).to.equal('wrong_state');
        expect(await inBook(sale)).to.equal(state);
        expect((await inLedger(sale))?.[0] ?? 'draft').to.equal(state === 'draft' ? 'draft' : 'warm');
      }
    }
  });

  it('R5 a sale that may have sold is never loaded again, not even when the ledger has lost it', async () => {
    for (const state of ['open', 'paused', 'closed'] as const) {
      const sale = saleOf({ state });
      books.putSale(sale);
      expect(await desk.warm(sale.saleId, 'ann')).to.deep.include({ outcome: 'wrong_state' });
      expect(await inLedger(sale)).to.equal(null);
    }
  });

  it('a sale that does not exist is not_found', async () => {
    for (const move of ['warm', 'open', 'pause', 'close'] as const) {
      expect(await desk[move]('404', 'ann')).to.deep.equal({ outcome: 'not_found' });
    }
    expect(await desk.show('404')).to.equal(null);
  });

  it('R5 warm goes to the ledger first, and never touches stock that is loaded', async () => {
    const sale = await desk.create(newSale({ stock: 5 }), 'ann');
    const order: string[] = [];
    const watched = new SaleDesk({
      book: Object.assign(Object.create(books) as MemoryBooks, {
        find: books.find.bind(books),
        move: async (saleId: string, to: SaleState, actor: string) => {
          order.push('book');
          return books.move(saleId, to, actor);
        },
      }),
      ledger: {
        warm: async (of) => {
          order.push('ledger');
          return ledger.warm(of);
        },
        gate: ledger.gate.bind(ledger),
      },
      cache,
    });
    await watched.warm(sale.saleId, 'ann');
    expect(order).to.deep.equal(['ledger', 'book']);

    await ledger.gate(sale, 'open');
    await ledger.deduct(batchOf(sale, purchasesOf('u1')));
    expect((await desk.warm(sale.saleId, 'ann')).outcome).to.equal('done');
    expect((await inLedger(sale))?.[1]).to.equal(4);
  });

  it('an open that died before the ledger followed is brought into step by a repeat', async () => {
    const sale = await desk.create(newSale(), 'ann');
    await desk.warm(sale.saleId, 'ann');
    await books.move(sale.saleId, 'open'); // and then the process died
    expect((await inLedger(sale))?.[0]).to.equal('warm');
    expect((await desk.open(sale.saleId, 'ann')).outcome).to.equal('done');
    expect((await inLedger(sale))?.[0]).to.equal('open');
  });

  it('R5 says so when the ledger has lost the sale, or is in repair', async () => {
    const lost = saleOf({ state: 'warm' });
    books.putSale(lost);
    expect(await desk.open(lost.saleId, 'ann')).to.deep.include({ outcome: 'not_warmed' });

    const broken = saleOf({ state: 'open' });
    books.putSale(broken);
    await ledger.warm(broken);
    ledger.bucket({ saleId: broken.saleId, bucket: 0 }).sale!.state = 'repair';
    expect(await desk.pause(broken.saleId, 'ann')).to.deep.include({ outcome: 'repairing' });
    expect((await inLedger(broken))?.[0]).to.equal('repair');
  });

  it('every move makes the gates look again', async () => {
    const sale = await desk.create(newSale(), 'ann');
    for (const move of ['warm', 'open', 'pause', 'close'] as const) {
      await cache.write(sale.saleId, sale);
      await desk[move](sale.saleId, 'ann');
      expect(await cache.read(sale.saleId), move).to.deep.equal({ cached: 'missing' });
    }
  });

  it('lists sales, newest first, so many at most', async () => {
    const made = [];
    for (let i = 0; i < 3; i++) made.push(await desk.create(newSale(), 'ann'));
    const [first, second, third] = made.map(({ saleId }) => saleId);
    expect((await desk.list(10)).map(({ saleId }) => saleId)).to.deep.equal([third, second, first]);
    expect(await desk.list(1)).to.have.length(1);
  });
});

import { decodeBatch, type Batch } from '../../../src/core/batch.js';
import type { Sale } from '../../../src/core/sale.js';
import type { RepairBook, Scatter } from '../../../src/core/ports/repair-book.js';
import type { MemoryBooks } from './memory-books.js';
import type { MemoryDeadLetterBook } from './memory-dead-letter-book.js';

/** What the repair of a sale asks of the book, in memory. */
export class MemoryRepairBook implements RepairBook {
  readonly #books: MemoryBooks;
  readonly #letters: MemoryDeadLetterBook;

  constructor(books: MemoryBooks, letters: MemoryDeadLetterBook) {
    this.#books = books;
    this.#letters = letters;
  }

  async raiseEpoch(saleId: string, atLeast: number, actor: string, scatter?: Scatter): Promise<Sale | null> {
    const before = this.#books.saleOf(saleId);
    if (before === undefined || (scatter && before.buckets !== scatter.from)) return null;
    const buckets = scatter?.to ?? before.buckets;
    const raised = { ...before, epoch: Math.max(before.epoch + 1, atLeast), buckets };
    this.#books.putSale(raised);
    const of = (sale: Sale) => ({ epoch: sale.epoch, ...(scatter && { buckets: sale.buckets }) });
    const action = scatter ? 'sale.scattered' : 'sale.repaired';
    const subject = `sale:${saleId}`;
    this.#books.audited.push({ actor, action, subject, before: of(before), after: of(raised) });
    return raised;
  }

  async parkedBatchesOf(saleId: string): Promise<Batch[]> {
    const batches = new Map<string, Batch>();
    for (const { body } of this.#letters.letters.filter(({ state }) => state === 'parked')) {
      const decoded = decodeBatch(body);
      if (decoded.outcome !== 'decoded' || decoded.batch.saleId !== saleId) continue;
      batches.set(decoded.batch.batchId, decoded.batch);
    }
    return [...batches.values()];
  }
}

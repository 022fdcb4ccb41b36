import { decodeBatch, type Batch } from '../../../src/core/batch.js';
import { mintedAtMs } from '../../../src/core/order-id.js';
import type { Sale } from '../../../src/core/sale.js';
import type { RepairRepository, Reshard } from '../../../src/core/ports/repair-stores.js';
import type { MemoryRepositories } from './memory-repositories.js';
import type { MemoryDeadLetters } from './memory-dead-letters.js';

/** Reads and changes MySQL in memory for the repair of a sale. */
export class MemoryRepairRepository implements RepairRepository {
  readonly #repositories: MemoryRepositories;
  readonly #deadLetters: MemoryDeadLetters;

  constructor(repositories: MemoryRepositories, deadLetters: MemoryDeadLetters) {
    this.#repositories = repositories;
    this.#deadLetters = deadLetters;
  }

  async raiseEpoch(saleId: string, atLeast: number, actor: string, reshard?: Reshard): Promise<Sale | null> {
    const before = this.#repositories.saleOf(saleId);
    if (before === undefined || before.retiredAtMs !== null) return null;
    if (reshard && before.buckets !== reshard.from) return null;
    const buckets = reshard?.to ?? before.buckets;
    const raised = { ...before, epoch: Math.max(before.epoch + 1, atLeast), buckets };
    this.#repositories.putSale(raised);
    const of = (sale: Sale) => ({ epoch: sale.epoch, ...(reshard && { buckets: sale.buckets }) });
    const action = reshard ? 'sale.resharded' : 'sale.repaired';
    const subject = `sale:${saleId}`;
    this.#repositories.audited.push({ actor, action, subject, before: of(before), after: of(raised) });
    return raised;
  }

  async claimReshard(saleId: string, { from, to }: Reshard, actor: string, perSecond: number): Promise<boolean> {
    const sale = this.#repositories.saleOf(saleId);
    const [action, subject] = ['sale.reshard_claimed', `sale:${saleId}`];
    if (sale?.state !== 'open' || sale.buckets !== from) return false;
    const { audited } = this.#repositories;
    if (audited.some((entry) => entry.action === action && entry.subject === subject)) return false;
    audited.push({ actor, action, subject, before: { buckets: from }, after: { buckets: to, perSecond } });
    return true;
  }

  async lastOrderMs(saleId: string): Promise<number | null> {
    const times = this.#repositories.allOrders
      .filter((order) => order.saleId === saleId)
      .map(({ orderId }) => mintedAtMs(orderId));
    return times.length === 0 ? null : Math.max(...times);
  }

  async parkedBatchesOf(saleId: string): Promise<Batch[]> {
    const batches = new Map<string, Batch>();
    for (const { body, state, reason } of this.#deadLetters.deadLetters) {
      if (state !== 'parked' || reason === 'forged') continue;
      const decoded = decodeBatch(body);
      if (decoded.outcome !== 'decoded' || decoded.batch.saleId !== saleId) continue;
      batches.set(decoded.batch.batchId, decoded.batch);
    }
    return [...batches.values()];
  }
}

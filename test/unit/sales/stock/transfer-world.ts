import type { Sale } from '../../../../src/core/sale.js';
import { openTransfers, unitsInTransit } from '../../../../src/core/bucket.js';
import type { TransferStore } from '../../../../src/core/ports/transfer-store.js';
import { ManualClock } from '../../../helpers/memory/manual-clock.js';
import { MemoryRedis } from '../../../helpers/memory/memory-redis.js';
import { MemoryTransferStore } from '../../../helpers/memory/memory-transfer-store.js';
import { saleOf } from '../../../helpers/sales.js';

/** Error thrown by a process that dies in these tests. */
export class Death extends Error {}

/** A sale of several buckets in memory, and processes that move its units. */
export class TransferWorld {
  readonly clock = new ManualClock();
  readonly store = new MemoryRedis({ clock: this.clock });
  readonly transfers = new MemoryTransferStore(this.store);
  readonly sale: Sale;

  private constructor(buckets: number) {
    this.sale = saleOf({ stock: 0, buckets, limitPerBuyer: 1000 }, this.clock.nowMs());
  }

  /** @param units in each bucket at the start */
  static async of(...units: readonly number[]): Promise<TransferWorld> {
    const world = new TransferWorld(units.length);
    await world.store.warm(world.sale);
    await world.store.setState(world.sale, 'open');
    units.forEach((count, bucket) => (world.bucket(bucket).unitsLeft = count));
    return world;
  }

  bucket(bucket: number) {
    return this.store.bucket({ saleId: this.sale.saleId, bucket });
  }

  home(bucket: number) {
    return { saleId: this.sale.saleId, bucket, buckets: this.sale.buckets };
  }

  get all() {
    return Array.from({ length: this.sale.buckets }, (_, bucket) => this.bucket(bucket));
  }

  get units(): number[] {
    return this.all.map(({ unitsLeft }) => unitsLeft);
  }

  /** Units in buckets or in transit. */
  get total(): number {
    const left = this.units.reduce((sum, units) => sum + units, 0);
    return left + unitsInTransit(this.all.map((bucket) => bucket.transfers()));
  }

  get open(): number {
    return openTransfers(this.all.map((bucket) => bucket.transfers())).length;
  }

  /** Creates a process that dies after some steps. Its last step still acts. @param steps before the death */
  dyingAfter(steps: number): TransferStore {
    let left = steps;
    const step = async <T>(act: () => Promise<T>): Promise<T> => {
      if (left <= 0) throw new Death();
      const result = await act();
      if (--left <= 0) throw new Death();
      return result;
    };
    const { transfers } = this;
    return {
      read: (...args) => transfers.read(...args),
      transferOut: (...args) => step(() => transfers.transferOut(...args)),
      transferIn: (...args) => step(() => transfers.transferIn(...args)),
      endTransfer: (...args) => step(() => transfers.endTransfer(...args)),
    };
  }
}

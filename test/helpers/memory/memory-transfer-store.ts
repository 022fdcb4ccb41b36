import type { UnitTransfer, BucketRef } from '../../../src/core/bucket.js';
import type {
  TransferredIn,
  BucketState,
  TransferredOut,
  TransferStore,
} from '../../../src/core/ports/transfer-store.js';
import type { MemoryRedisServer } from './memory-redis-server.js';

/** Transfers of units between the buckets of a Redis in memory. */
export class MemoryTransferStore implements TransferStore {
  readonly #server: MemoryRedisServer;

  constructor(server: MemoryRedisServer) {
    this.#server = server;
  }

  async read(ref: BucketRef, buckets: number): Promise<BucketState | null> {
    this.#server.failOn('read_fails');
    const bucket = this.#server.bucket(ref);
    const { sale, unitsLeft } = bucket;
    if (!this.#server.isSure(sale) || (sale.buckets ?? buckets) !== buckets) return null;
    return { epoch: sale.epoch, unitsLeft, ...bucket.transfers(this.#server.nowMs) };
  }

  async transferOut(from: BucketRef, to: number, epoch: number, least: number): Promise<TransferredOut> {
    const bucket = this.#server.bucket(from);
    if (this.#isUnavailable(from, epoch)) return { outcome: 'unavailable' };
    const last = bucket.outgoing.get(to);
    if (last?.isOpen) return { outcome: 'transferred', seq: last.seq, units: last.units };
    if (bucket.unitsLeft <= 0) return { outcome: 'empty' };
    this.#server.aboutToWrite(bucket);
    const units = Math.min(bucket.unitsLeft, Math.max(least, Math.ceil(bucket.unitsLeft / 2)));
    const seq = (last?.seq ?? 0) + 1;
    bucket.unitsLeft -= units;
    bucket.outgoing.set(to, { seq, units, isOpen: true, atMs: this.#server.nowMs });
    return { outcome: 'transferred', seq, units };
  }

  async transferIn(saleId: string, { from, to, seq, units }: UnitTransfer, epoch: number): Promise<TransferredIn> {
    const ref = { saleId, bucket: to };
    const bucket = this.#server.bucket(ref);
    if (this.#isUnavailable(ref, epoch)) return { outcome: 'unavailable' };
    if (seq <= (bucket.incoming.get(from) ?? 0)) return { outcome: 'already_received', unitsLeft: bucket.unitsLeft };
    this.#server.aboutToWrite(bucket);
    bucket.incoming.set(from, seq);
    bucket.unitsLeft += units;
    return { outcome: 'received', unitsLeft: bucket.unitsLeft };
  }

  async endTransfer(
    saleId: string,
    { from, to, seq }: UnitTransfer,
    epoch: number,
  ): Promise<'ended' | 'already_ended' | 'unavailable'> {
    const ref = { saleId, bucket: from };
    const bucket = this.#server.bucket(ref);
    if (this.#isUnavailable(ref, epoch)) return 'unavailable';
    const last = bucket.outgoing.get(to);
    if (last === undefined || !last.isOpen || last.seq !== seq) return 'already_ended';
    this.#server.aboutToWrite(bucket);
    bucket.outgoing.set(to, { ...last, isOpen: false });
    return 'ended';
  }

  #isUnavailable(ref: BucketRef, epoch: number): boolean {
    const { sale } = this.#server.bucket(ref);
    return !this.#server.isSure(sale) || sale.epoch !== epoch;
  }
}

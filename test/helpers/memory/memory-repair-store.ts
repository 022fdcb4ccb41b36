import type { Batch } from '../../../src/core/batch.js';
import type { OperationalError } from '../../../src/core/errors.js';
import type { StoredRequest } from '../../../src/core/ports/reconcile-store.js';
import type { BucketStatus, RebuiltBucket, RepairStore } from '../../../src/core/ports/repair-stores.js';
import type { BucketRef } from '../../../src/core/bucket.js';
import type { BucketRepair, Marker, MemoryBucket } from './memory-bucket.js';
import type { MemoryRedisServer } from './memory-redis-server.js';

/** Rebuilds buckets of a Redis in memory. */
export class MemoryRepairStore implements RepairStore {
  readonly #server: MemoryRedisServer;

  constructor(server: MemoryRedisServer) {
    this.#server = server;
  }

  async statusOf(refs: readonly BucketRef[]): Promise<BucketStatus[]> {
    this.#server.failOn('read_fails');
    return refs.map((ref) => {
      this.#server.reach(ref);
      return this.#statusOf(ref);
    });
  }

  async statusOrFault(refs: readonly BucketRef[]): Promise<(BucketStatus | OperationalError)[]> {
    return refs.map((ref) => this.#server.faultOf(ref) ?? this.#statusOf(ref));
  }

  #statusOf(ref: BucketRef): BucketStatus {
    const { sale } = this.#server.bucket(ref);
    const sameServer = sale?.stamp === this.#server.runId;
    return { state: sale?.state ?? null, epoch: sale?.epoch ?? 0, sameServer };
  }

  async askForRepair(saleId: string): Promise<void> {
    this.#server.asks.add(saleId);
  }

  async asked(max: number): Promise<string[]> {
    this.#server.failOn('read_fails');
    return [...this.#server.asks].slice(0, max);
  }

  async answered(saleId: string): Promise<void> {
    this.#server.asks.delete(saleId);
  }

  lock(ref: BucketRef, token: string, leaseMs: number, seenEpoch?: number): Promise<'locked' | 'busy' | 'moved'> {
    return this.#call(() => {
      const { runId, nowMs } = this.#server;
      const bucket = this.#server.bucket(ref);
      const { repair } = bucket;
      const leftMs = (repair?.untilMs ?? 0) - nowMs;
      const isLeased = repair !== null && repair.runId === runId && leftMs > 0 && leftMs <= repair.leaseMs;
      if (isLeased && repair.token !== token) return 'busy';
      if (seenEpoch !== undefined && (bucket.sale?.epoch ?? 0) !== seenEpoch) return 'moved';
      this.#server.aboutToWrite(bucket);
      bucket.sale ??= {
        state: 'repair',
        epoch: 0,
        stamp: 0,
        opensAtMs: 0,
        closesAtMs: 0,
        limitPerBuyer: 0,
      };
      bucket.sale.state = 'repair';
      bucket.repair = { token, runId, leaseMs, untilMs: nowMs + leaseMs, staged: new Map() };
      return 'locked';
    });
  }

  async *requestsWithUnits(ref: BucketRef): AsyncGenerator<StoredRequest[]> {
    this.#server.failOn('read_fails');
    const withUnits = [...this.#server.bucket(ref).requests].filter(([, { state }]) => state !== 'released');
    if (withUnits.length > 0) yield withUnits;
  }

  stage(ref: BucketRef, token: string, entries: readonly StoredRequest[]): Promise<'staged' | 'superseded'> {
    return this.#call(() => {
      const repair = this.#renew(this.#server.bucket(ref), token);
      if (repair === null) return 'superseded';
      for (const [key, entry] of entries) if (!repair.staged.has(key)) repair.staged.set(key, entry);
      return 'staged';
    });
  }

  async pendingBodies(ref: BucketRef): Promise<string[]> {
    this.#server.failOn('read_fails');
    const bucket = this.#server.bucket(ref);
    const markers = bucket.pendingOldestFirst().map(([batchId]) => bucket.marker(batchId, this.#server.nowMs));
    return markers.map((marker) => bodyOf(marker)).filter((body) => body !== null);
  }

  restoreMarker(
    batch: Batch,
    bucketIndex: number,
    token: string,
    isPending: boolean,
  ): Promise<'restored' | 'superseded'> {
    return this.#call(() => {
      const bucket = this.#server.bucket({ saleId: batch.saleId, bucket: bucketIndex });
      if (this.#renew(bucket, token) === null) return 'superseded';
      const { batchId, body } = batch;
      if (bucket.marker(batchId, this.#server.nowMs) === null) bucket.markers.set(batchId, { kind: 'deducted', body });
      const hasBody = bodyOf(bucket.marker(batchId, this.#server.nowMs)) !== null;
      if (isPending && hasBody && !bucket.pending.has(batchId)) bucket.pending.set(batchId, this.#server.nowMs);
      return 'restored';
    });
  }

  swap(ref: BucketRef, token: string, rebuilt: RebuiltBucket): Promise<'swapped' | 'superseded'> {
    return this.#call(() => {
      const bucket = this.#server.bucket(ref);
      const repair = this.#own(bucket, token);
      if (repair === null || rebuilt.epoch <= (bucket.sale?.epoch ?? 0)) return 'superseded';
      this.#server.aboutToWrite(bucket);
      const { unitsLeft, ...sale } = rebuilt;
      bucket.sale = { ...sale, stamp: this.#server.runId };
      bucket.unitsLeft = unitsLeft;
      bucket.outgoing.clear();
      bucket.incoming.clear();
      bucket.requests.clear();
      for (const [key, entry] of repair.staged) bucket.requests.set(key, entry);
      bucket.repair = null;
      return 'swapped';
    });
  }

  /** Returns the repair of this token if it began on this server. */
  #own({ sale, repair }: MemoryBucket, token: string): BucketRepair | null {
    const isOwn = sale?.state === 'repair' && repair?.token === token && repair.runId === this.#server.runId;
    return isOwn ? repair : null;
  }

  #renew(bucket: MemoryBucket, token: string): BucketRepair | null {
    if (this.#own(bucket, token) === null) return null;
    this.#server.aboutToWrite(bucket);
    const repair = this.#own(bucket, token);
    if (repair !== null) repair.untilMs = this.#server.nowMs + repair.leaseMs;
    return repair;
  }

  async #call<T>(act: () => T): Promise<T> {
    this.#server.failOn('repair_fails');
    const word = act();
    this.#server.failOn('repair_reply_lost');
    return word;
  }
}

const bodyOf = (marker: Marker | null): string | null =>
  marker === null || marker.kind === 'aborted' ? null : marker.body;

import type { Batch } from '../../../../src/core/batch.js';
import type { Sale } from '../../../../src/core/sale.js';
import { createOrderIdMinter } from '../../../../src/orders/order-id-minter.js';
import type { AuditEntry } from '../../../../src/core/ports/audit-log.js';
import { resolveLost } from '../../../../src/operate/reconcile/resolve-lost.js';
import { EvidenceOf, type SearchBroker } from '../../../../src/operate/reconcile/search-broker.js';
import type { Resolves } from '../../../../src/operate/reconcile/services.js';
import { silentLog } from '../../../helpers/silent-log.js';
import { ReconcileAdmin, type ReconcileOptions } from '../../../../src/operate/reconcile/reconcile-admin.js';
import type { SaleResult } from '../../../../src/operate/reconcile/sale-report.js';
import { MemoryCompensationRepository } from '../../../helpers/memory/memory-compensation-repository.js';
import { MemoryReconcileRepository, MemoryReconcileStore } from '../../../helpers/memory/memory-reconcile.js';
import { MemoryReconcileRuns } from '../../../helpers/memory/memory-reconcile-runs.js';
import { MemoryRepairStore } from '../../../helpers/memory/memory-repair-store.js';
import { MemoryWorkerSlots } from '../../../helpers/memory/memory-worker-slots.js';
import { DeadLetterWorld } from '../dead-letters/dead-letter-world.js';

export const OPTIONS: ReconcileOptions = {
  safeAgeMs: 120_000,
  waitingMaxMs: 3_600_000,
  readsMax: 100,
  markerAgeMs: 86_400_000,
  outboxAgeMs: 600_000,
  retryFirstMs: 60_000,
  leaseMs: 60_000,
};

/** Reconcile on stores in memory, with a worker that works on request. */
export class ReconcileWorld extends DeadLetterWorld {
  readonly jobs = new MemoryCompensationRepository(this.clock);
  readonly runsRepository = new MemoryReconcileRuns(this.clock);
  readonly read = new MemoryReconcileStore(this.store);
  readonly repairs = new MemoryRepairStore(this.store);
  readonly reconcile: ReconcileAdmin;
  readonly resolveLost: Resolves['resolveLost'];
  /** Messages of the broker that a search for lost orders can find. */
  readonly kept = { batches: [] as string[], events: [] as string[] };
  /** Why the broker cannot be searched completely. */
  silent: string | null = null;
  readonly audits: AuditEntry[] = [];

  constructor() {
    super();
    const slots = new MemoryWorkerSlots(this.clock);
    const minter = createOrderIdMinter({ slots, clock: this.clock, log: silentLog }, { owner: 'r', leaseMs: 60_000 });
    const inner = this.broker.redriveChannel();
    const ports = {
      batches: this.store,
      store: this.read,
      repairs: this.repairs,
      repository: new MemoryReconcileRepository(this.mysql, this.deadLetters),
      jobs: this.jobs,
      runs: this.runsRepository,
      sales: this.mysql,
      outbox: this.mysql.outbox,
      clock: this.clock,
      log: silentLog,
      fail: { repository: this.mysql, minter, clock: this.clock },
      channel: {
        publish: async (batch: Batch) => {
          await inner.publish(batch);
          await this.onPublish(batch);
        },
      },
    };
    this.reconcile = new ReconcileAdmin(ports, OPTIONS);
    const audit = { append: async (entry: AuditEntry) => void this.audits.push(entry), list: async () => [] };
    const search: SearchBroker = async (saleId, lost) => {
      const evidence = new EvidenceOf(saleId, lost);
      for (const body of this.kept.batches) evidence.addBatch(body);
      for (const body of this.kept.events) evidence.addEvents(body);
      return { found: evidence.found, silent: this.silent };
    };
    this.resolveLost = (request, onOrder) =>
      resolveLost(request, { ...ports, audit, search }, { ...OPTIONS, paymentWindowMs: 900_000 }, onOrder);
  }

  /** Holds units in a stray batch, which has no dead letter and is unknown to the re-drive. */
  async stray(sale: Sale, texts: readonly string[]): Promise<Batch> {
    const batch = await this.deducted(sale, texts);
    await this.store.park(batch);
    return batch;
  }

  /** @returns the findings, as `kind user` or `kind units` */
  async found(saleId: string, apply = false): Promise<string[]> {
    const results: SaleResult[] = [];
    await this.reconcile.run({ saleId, apply, waitMs: 0, actor: 'ann' }, (result) => results.push(result));
    const [result] = results;
    if (result?.outcome !== 'compared') throw new Error(`not compared: ${result?.outcome}`);
    return result.report.findings.map((one) => {
      const detail =
        'userId' in one
          ? one.userId
          : 'units' in one
            ? String(one.units)
            : 'requests' in one
              ? String(one.requests)
              : '';
      return `${one.kind} ${detail}`.trimEnd();
    });
  }

  /** Publishes events of orders, so that only rows that a test leaves in the outbox are stuck. */
  async publishNotifications(): Promise<void> {
    await this.mysql.outbox.markDone(this.mysql.outbox.undone('batch_recorded').map(({ id }) => id));
  }

  /** Processes due jobs, as a keeper does. */
  async compensate(): Promise<void> {
    await this.reconcile.compensate('keeper');
  }
}

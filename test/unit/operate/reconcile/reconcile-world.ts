import type { Batch } from '../../../../src/core/batch.js';
import type { Sale } from '../../../../src/core/sale.js';
import { createOrderIdMinter } from '../../../../src/orders/order-id-minter.js';
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

/** Reconcile with everything around it in memory, and a worker that works when a test asks for it. */
export class ReconcileWorld extends DeadLetterWorld {
  readonly jobs = new MemoryCompensationRepository(this.clock);
  readonly runsRepository = new MemoryReconcileRuns(this.clock);
  readonly read = new MemoryReconcileStore(this.store);
  readonly repairs = new MemoryRepairStore(this.store);
  readonly reconcile: ReconcileAdmin;

  constructor() {
    super();
    const slots = new MemoryWorkerSlots(this.clock);
    const minter = createOrderIdMinter({ slots, clock: this.clock, log: silentLog }, { owner: 'r', leaseMs: 60_000 });
    const inner = this.broker.redriveChannel();
    this.reconcile = new ReconcileAdmin(
      {
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
          publish: async (batch) => {
            await inner.publish(batch);
            await this.onPublish(batch);
          },
        },
      },
      OPTIONS,
    );
  }

  /** Holds units for these buyers in a stray batch: it has no dead letter, and the re-drive does not see it. */
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

  /** Works off due jobs, as a keeper does. */
  async compensate(): Promise<void> {
    await this.reconcile.compensate('keeper');
  }
}

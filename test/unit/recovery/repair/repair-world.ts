import type { Sale } from '../../../../src/core/sale.js';
import { formatRequestEntry } from '../../../../src/core/outcome.js';
import type { RecoveryMetrics } from '../../../../src/recovery/metrics.js';
import type { RepairStore } from '../../../../src/core/ports/repair-stores.js';
import { repairSale, type RepairPorts, type SaleRepair } from '../../../../src/recovery/repair/repair-sale.js';
import { MemoryReconcileRepository } from '../../../helpers/memory/memory-reconcile.js';
import { MemoryRepairRepository } from '../../../helpers/memory/memory-repair-repository.js';
import { MemoryRepairStore } from '../../../helpers/memory/memory-repair-store.js';
import { replacing } from '../../../helpers/replacing.js';
import { DeadLetterWorld } from '../../operate/dead-letters/dead-letter-world.js';

export const OPTIONS = { quietMs: 1500, waitMaxMs: 15_000, leaseMs: 10_000 };

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

/** A sale with everything around it in memory, on a server that can die and lose writes. */
export class RepairWorld extends DeadLetterWorld {
  readonly results: string[] = [];
  /** The last published numbers of live and closed sales that wait for a repair. */
  locked: [number, number] | null = null;
  readonly repairMetrics: Pick<RecoveryMetrics, 'repairTried' | 'salesInRepair'> = {
    repairTried: (result) => void this.results.push(result),
    salesInRepair: (live, closed) => void (this.locked = [live, closed]),
  };

  constructor() {
    super();
    this.store.keepHistory();
  }

  /** Returns the ports of a repair, with some methods of its store replaced. */
  ports(methods: Partial<RepairStore> = {}): RepairPorts {
    const repository = new MemoryReconcileRepository(this.mysql, this.deadLetters);
    const repair = new MemoryRepairRepository(this.mysql, this.deadLetters);
    return {
      repairs: replacing<RepairStore>(new MemoryRepairStore(this.store), methods),
      setState: (...args) => this.store.setState(...args),
      repository: {
        raiseEpoch: (...args) => repair.raiseEpoch(...args),
        claimReshard: (...args) => repair.claimReshard(...args),
        lastOrderMs: (...args) => repair.lastOrderMs(...args),
        parkedBatchesOf: (...args) => repair.parkedBatchesOf(...args),
        orderPage: (...args) => repository.orderPage(...args),
        unlistedOrders: (...args) => repository.unlistedOrders(...args),
        findSale: (...args) => repository.findSale(...args),
      },
      sales: this.mysql,
      progress: null,
      clock: {
        nowMs: () => this.clock.nowMs(),
        monotonicMs: () => this.clock.monotonicMs(),
        // Renewing the leases by the timer must not move the clock.
        sleep: (ms, signal) => (signal === undefined ? this.clock.sleep(ms) : untilAborted(signal)),
      },
      log: this.log,
    };
  }

  repair(sale: Sale, ports = this.ports(), actor = 'keeper'): Promise<SaleRepair> {
    return repairSale(sale, ports, OPTIONS, { actor });
  }

  /** State, epoch, units left and requests of the only bucket. */
  bucketOf({ saleId }: Sale): { state: string; epoch: number; unitsLeft: number; requests: Record<string, string> } {
    const { sale, unitsLeft, requests } = this.store.bucket({ saleId, bucket: 0 });
    return {
      state: sale?.state ?? 'gone',
      epoch: sale?.epoch ?? 0,
      unitsLeft,
      requests: Object.fromEntries([...requests].map(([key, entry]) => [key, formatRequestEntry(entry)]).sort()),
    };
  }
}

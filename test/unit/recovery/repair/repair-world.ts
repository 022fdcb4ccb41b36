import type { Sale } from '../../../../src/core/sale.js';
import { formatRequestEntry } from '../../../../src/core/outcome.js';
import type { RepairMeters, RepairResultWord } from '../../../../src/core/ports/repair-meters.js';
import type { RepairLedger } from '../../../../src/core/ports/repair-ledger.js';
import type { SaleLedger } from '../../../../src/core/ports/stock-ledger.js';
import { repairSale, type RepairPorts, type SaleRepair } from '../../../../src/recovery/repair/repair-sale.js';
import { MemoryReconcileBook } from '../../../helpers/memory/memory-reconcile.js';
import { MemoryRepairBook } from '../../../helpers/memory/memory-repair-book.js';
import { MemoryRepairLedger } from '../../../helpers/memory/memory-repair-ledger.js';
import { DeadLetterWorld } from '../dead-letters/dead-letter-world.js';

export const OPTIONS = { quietMs: 1500, waitMaxMs: 15_000, leaseMs: 10_000 };

/** A sale with everything around it in memory, on a server that can die and lose what it wrote. */
export class RepairWorld extends DeadLetterWorld {
  readonly results: RepairResultWord[] = [];
  /** Live and closed sales that were shut, as they were last published. */
  shut: [number, number] | null = null;
  readonly repairMeters: RepairMeters = {
    repairTried: (result) => void this.results.push(result),
    salesShut: (live, closed) => void (this.shut = [live, closed]),
  };

  constructor() {
    super();
    this.ledger.keepHistory();
  }

  /** What a repair needs; each part as it is, or as a test says. */
  ports(parts: Partial<RepairLedger & Pick<SaleLedger, 'gate'>> = {}): RepairPorts {
    const ledger = new MemoryRepairLedger(this.ledger);
    const book = new MemoryReconcileBook(this.books, this.letters);
    const repair = new MemoryRepairBook(this.books, this.letters);
    return {
      ledger: {
        standing: (...args) => ledger.standing(...args),
        shut: (...args) => ledger.shut(...args),
        requestsWithUnits: (...args) => ledger.requestsWithUnits(...args),
        stage: (...args) => ledger.stage(...args),
        pendingBodies: (...args) => ledger.pendingBodies(...args),
        remember: (...args) => ledger.remember(...args),
        reopen: (...args) => ledger.reopen(...args),
        gate: (...args) => this.ledger.gate(...args),
        ...parts,
      },
      book: {
        raiseEpoch: (...args) => repair.raiseEpoch(...args),
        parkedBatchesOf: (...args) => repair.parkedBatchesOf(...args),
        agedOrders: (...args) => book.agedOrders(...args),
      },
      ...{ sales: this.books, clock: this.clock, log: this.log },
    };
  }

  repair(sale: Sale, ports = this.ports(), actor = 'keeper'): Promise<SaleRepair> {
    return repairSale(sale, ports, OPTIONS, { actor });
  }

  /** State, epoch, units left and requests of the only bucket. */
  bucketOf({ saleId }: Sale): { state: string; epoch: number; unitsLeft: number; requests: Record<string, string> } {
    const { sale, unitsLeft, requests } = this.ledger.bucket({ saleId, bucket: 0 });
    return {
      ...{ state: sale?.state ?? 'gone', epoch: sale?.epoch ?? 0, unitsLeft },
      requests: Object.fromEntries([...requests].map(([key, entry]) => [key, formatRequestEntry(entry)]).sort()),
    };
  }
}

import type { Job } from '../../../src/keeper/job.js';
import type { RepairMeters } from '../../../src/ports/repair-meters.js';
import { alignGates } from '../../../src/repair/align-gates.js';
import { repairClosedSales, repairSales, type RepairJobPorts } from '../../../src/repair/repair-jobs.js';
import { MemoryReconcileBook } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairBook } from '../../helpers/memory/memory-repair-book.js';
import type { Life } from '../engine/life.js';
import { streamed, through } from '../engine/through.js';
import type { Site } from '../site.js';

/** The jobs that rebuild a sale after Redis has restarted, as the keeper runs them. */
export function repairers(life: Life, site: Site): Job[] {
  const { shape, books, letters, log } = site;
  const { repair } = site.servers;
  const read = new MemoryReconcileBook(books, letters);
  const ports: RepairJobPorts = {
    ledger: {
      ...through(life, 'redis', repair, ['standing', 'shut', 'stage', 'remember', 'reopen']),
      requestsWithUnits: streamed(life, 'redis', 'requestsWithUnits', (ref) => repair.requestsWithUnits(ref)),
      ...through(life, 'redis', site.ledger, ['gate']),
    },
    book: {
      ...through(life, 'mysql', new MemoryRepairBook(books, letters), ['raiseEpoch', 'parkedBatchesOf']),
      agedOrders: streamed(life, 'mysql', 'agedOrders', (sale) => read.agedOrders(sale)),
    },
    sales: through(life, 'mysql', books, ['list', 'find']),
    meters: metersOf(site),
    ...{ clock: life.clock, log },
  };
  const options = { quietMs: shape.quietMs, waitMaxMs: shape.repairWaitMaxMs, leaseMs: shape.repairLeaseMs };
  return [repairSales(ports, options), repairClosedSales(ports, options), alignGates(ports)];
}

function metersOf(site: Site): RepairMeters {
  return {
    repairTried: (result) => site.count(`repair: ${result}`),
    salesShut: () => undefined,
  };
}

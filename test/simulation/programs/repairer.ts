import type { Resharded } from '../../../src/core/sale-repair.js';
import type { Job } from '../../../src/core/job.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import { alignSaleStates } from '../../../src/recovery/repair/align-sale-states.js';
import type { RepairOptions } from '../../../src/recovery/repair/repair-sale.js';
import { reshardSale } from '../../../src/recovery/repair/reshard-sale.js';
import { repairClosedSales, type RepairJobPorts, repairSales } from '../../../src/recovery/repair/repair-jobs.js';
import { MemoryReconcileRepository } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairRepository } from '../../helpers/memory/memory-repair-repository.js';
import type { Life } from '../engine/simulated-process.js';
import { streamed, through } from '../engine/with-faults.js';
import { SALE_ID } from '../shape.js';
import type { Site } from '../simulated-system.js';

/** The jobs that rebuild a sale after Redis has restarted, as the keeper runs them. */
export function repairers(life: Life, site: Site): Job[] {
  const ports = portsOf(life, site);
  const options = optionsOf(site);
  return [repairSales(ports, options), repairClosedSales(ports, options), alignSaleStates(ports)];
}

/** Splits the sale into `times` as many buckets as it has. */
export async function reshard(life: Life, site: Site, times: number): Promise<Resharded['outcome']> {
  const sale = await through(life, 'mysql', site.books, ['find']).find(SALE_ID);
  const cache = through(life, 'redis', site.cache, ['forget']);
  const order = { actor: 'owner', buckets: (sale?.buckets ?? 1) * times };
  site.past.repairs++; // from now on, since it may die at any point
  return (await reshardSale(SALE_ID, order, { ...portsOf(life, site), cache }, optionsOf(site))).outcome;
}

function portsOf(life: Life, site: Site): RepairJobPorts {
  const { books, deadLetters, log } = site;
  const { repair } = site.servers;
  const read = new MemoryReconcileRepository(books, deadLetters);
  return {
    store: {
      ...through(life, 'redis', repair, ['statusOf', 'lock', 'stage', 'pendingBodies', 'restoreMarker', 'swap']),
      requestsWithUnits: streamed(life, 'redis', 'requestsWithUnits', (ref) => repair.requestsWithUnits(ref)),
      ...through(life, 'redis', site.store, ['setState']),
    },
    repository: {
      ...through(life, 'mysql', new MemoryRepairRepository(books, deadLetters), ['raiseEpoch', 'parkedBatchesOf']),
      agedOrders: streamed(life, 'mysql', 'agedOrders', (sale) => read.agedOrders(sale)),
    },
    sales: through(life, 'mysql', books, ['list', 'find']),
    metrics: metricsOf(site),
    clock: life.clock,
    log,
  };
}

const optionsOf = ({ shape }: Site): RepairOptions => ({
  quietMs: shape.quietMs,
  waitMaxMs: shape.repairWaitMaxMs,
  leaseMs: shape.repairLeaseMs,
});

function metricsOf(site: Site): Pick<RecoveryMetrics, 'repairTried' | 'salesInRepair'> {
  return {
    repairTried: (result) => site.count(`repair: ${result}`),
    salesInRepair: () => undefined,
  };
}

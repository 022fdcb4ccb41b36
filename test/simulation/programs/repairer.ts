import type { Scattered } from '../../../src/core/scattered.js';
import type { Job } from '../../../src/core/job.js';
import type { RepairMeters } from '../../../src/core/ports/repair-meters.js';
import { alignGates } from '../../../src/recovery/repair/align-gates.js';
import type { RepairOptions } from '../../../src/recovery/repair/repair-sale.js';
import { scatterSale } from '../../../src/recovery/repair/scatter-sale.js';
import { repairClosedSales, repairSales, type RepairJobPorts } from '../../../src/recovery/repair/repair-jobs.js';
import { MemoryReconcileBook } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairBook } from '../../helpers/memory/memory-repair-book.js';
import type { Life } from '../engine/life.js';
import { streamed, through } from '../engine/through.js';
import { SALE_ID } from '../shape.js';
import type { Site } from '../site.js';

/** The jobs that rebuild a sale after Redis has restarted, as the keeper runs them. */
export function repairers(life: Life, site: Site): Job[] {
  const ports = portsOf(life, site);
  const options = optionsOf(site);
  return [repairSales(ports, options), repairClosedSales(ports, options), alignGates(ports)];
}

/** Splits the sale into `times` as many buckets as it has. */
export async function scatter(life: Life, site: Site, times: number): Promise<Scattered['outcome']> {
  const sale = await through(life, 'mysql', site.books, ['find']).find(SALE_ID);
  const cache = through(life, 'redis', site.cache, ['forget']);
  const order = { actor: 'owner', buckets: (sale?.buckets ?? 1) * times };
  site.past.repairs++; // from now on, since it may die at any point
  return (await scatterSale(SALE_ID, order, { ...portsOf(life, site), cache }, optionsOf(site))).outcome;
}

function portsOf(life: Life, site: Site): RepairJobPorts {
  const { books, letters, log } = site;
  const { repair } = site.servers;
  const read = new MemoryReconcileBook(books, letters);
  return {
    ledger: {
      ...through(life, 'redis', repair, ['standing', 'shut', 'stage', 'pendingBodies', 'remember', 'reopen']),
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
}

const optionsOf = ({ shape }: Site): RepairOptions => ({
  ...{ quietMs: shape.quietMs, waitMaxMs: shape.repairWaitMaxMs, leaseMs: shape.repairLeaseMs },
});

function metersOf(site: Site): RepairMeters {
  return {
    repairTried: (result) => site.count(`repair: ${result}`),
    salesShut: () => undefined,
  };
}

import type { SaleRows } from '../../../src/core/ports/reconcile-repository.js';
import type { RepairRepository } from '../../../src/core/ports/repair-stores.js';
import type { Resharded } from '../../../src/core/sale-repair.js';
import { GROUP_TOPICS, GROUPS } from '../../../src/core/topics.js';
import type { Job } from '../../../src/core/job.js';
import type { RecoveryMetrics } from '../../../src/recovery/metrics.js';
import { alignSaleStates } from '../../../src/recovery/repair/align-sale-states.js';
import type { RepairOptions } from '../../../src/recovery/repair/repair-sale.js';
import { reshardSale } from '../../../src/recovery/repair/reshard-sale.js';
import { repairClosedSales, type RepairJobPorts, repairSales } from '../../../src/recovery/repair/repair-jobs.js';
import { MemoryReconcileRepository } from '../../helpers/memory/memory-reconcile.js';
import { MemoryRepairRepository } from '../../helpers/memory/memory-repair-repository.js';
import type { SimulatedProcess } from '../engine/simulated-process.js';
import { pagesWithFaults, withFaults } from '../engine/with-faults.js';
import { SALE_ID } from '../shape.js';
import type { SimulatedSystem } from '../simulated-system.js';
import { noRecoveryMetrics } from '../../helpers/no-metrics.js';

const WRITERS = [GROUPS.writer, GROUPS.redriveWriter].map((group) => ({ group, topic: GROUP_TOPICS[group] }));

/** The jobs that rebuild a sale after Redis has restarted, as the keeper runs them. */
export function repairers(proc: SimulatedProcess, system: SimulatedSystem): Job[] {
  const ports = portsOf(proc, system);
  const options = optionsOf(system);
  return [repairSales(ports, options), repairClosedSales(ports, options), alignSaleStates(ports)];
}

/** Splits the sale into `times` as many buckets as it has. */
export async function reshard(
  proc: SimulatedProcess,
  system: SimulatedSystem,
  times: number,
): Promise<Resharded['outcome']> {
  const sale = await withFaults(proc, 'mysql', system.repositories, ['find']).find(SALE_ID);
  const forgetSnapshot = withFaults(proc, 'redis', system.cache, ['forget']).forget;
  const order = { actor: 'owner', buckets: (sale?.buckets ?? 1) * times };
  system.past.repairs++; // before the reshard, which may die at any point
  return (await reshardSale(SALE_ID, order, { ...portsOf(proc, system), forgetSnapshot }, optionsOf(system))).outcome;
}

function portsOf(proc: SimulatedProcess, system: SimulatedSystem): RepairJobPorts {
  const { repositories, deadLetters, log } = system;
  const { repair } = system.servers;
  const read: SaleRows = new MemoryReconcileRepository(repositories, deadLetters);
  const epochs: RepairRepository = new MemoryRepairRepository(repositories, deadLetters);
  return {
    repairs: {
      ...withFaults(proc, 'redis', repair, [
        'statusOf',
        'statusOrFault',
        'lock',
        'stage',
        'pendingBodies',
        'restoreMarker',
        'swap',
      ]),
      askForRepair: (saleId) => repair.askForRepair(saleId),
      asked: (max) => repair.asked(max),
      answered: (saleId) => repair.answered(saleId),
      requestsWithUnits: pagesWithFaults(proc, 'redis', 'requestsWithUnits', (ref) => repair.requestsWithUnits(ref)),
    },
    setState: withFaults(proc, 'redis', system.redis, ['setState']).setState,
    repository: {
      ...withFaults(proc, 'mysql', epochs, ['raiseEpoch', 'lastOrderMs', 'parkedBatchesOf']),
      ...withFaults(proc, 'mysql', read, ['orderPage', 'findSale']),
      unlistedOrders: pagesWithFaults(proc, 'mysql', 'unlistedOrders', (sale) => read.unlistedOrders(sale)),
    },
    sales: withFaults(proc, 'mysql', repositories, ['list', 'find']),
    progress: withFaults(proc, 'rocketmq', system.broker.progress(WRITERS), [
      'ends',
      'haveReceived',
      'unreceivedSales',
    ]),
    metrics: metricsOf(system),
    clock: proc.clock,
    log,
  };
}

const optionsOf = ({ shape }: SimulatedSystem): RepairOptions => ({
  quietMs: shape.quietMs,
  waitMaxMs: shape.repairWaitMaxMs,
  leaseMs: shape.repairLeaseMs,
});

const metricsOf = (system: SimulatedSystem): RecoveryMetrics => ({
  ...noRecoveryMetrics,
  repairTried: (result) => system.count(`repair: ${result}`),
});

import { createAuditLog } from '../../mysql/audit-log.js';
import { createCompensationRepository } from '../../mysql/compensation-repository.js';
import { createTracedDeadLetters } from '../../mysql/dead-letters.js';
import { createSaleRepository } from '../../mysql/sale-repository.js';
import type { Connections } from '../../process/connections.js';
import { createStockStore } from '../../redis/stock-store.js';
import type { TraceBroker } from '../../rocketmq/admin/trace-broker.js';
import { TracePurchase } from './trace-purchase.js';
import { createTraceRepository } from './trace-repository.js';
import { createTraceStore } from './trace-store.js';

export interface TraceServices {
  readonly trace: TracePurchase;
}

/** Opens a trace, which only reads. @param broker null if no broker is to be asked. @throws OperationalError redis */
export async function openTrace(
  connections: Connections<'mysql' | 'redis' | 'keeper'>,
  broker: TraceBroker | null,
): Promise<TraceServices> {
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const trace = new TracePurchase(
    {
      cell: connections.config.mysql.cell,
      sales: createSaleRepository(mysql),
      stock: createStockStore(redis, connections.log),
      store: createTraceStore(redis),
      repository: createTraceRepository(mysql),
      deadLetters: createTracedDeadLetters(mysql),
      jobs: createCompensationRepository(mysql),
      audit: createAuditLog(mysql),
      broker,
    },
    { redriveAfterMs: connections.config.keeper.redriveAfterMs },
  );
  return { trace };
}

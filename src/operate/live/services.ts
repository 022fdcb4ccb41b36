import type { OwnReport } from '../../core/ports/program-reports.js';
import { createSaleRepository } from '../../mysql/sale-repository.js';
import type { Connections } from '../../process/connections.js';
import { createAnswerHistory } from '../../redis/answer-history.js';
import { createBatchStore } from '../../redis/batch-store.js';
import { createProgramReports } from '../../redis/program-reports.js';
import { createStockStore } from '../../redis/stock-store.js';
import { createLandedOrders } from './landed-orders.js';
import { LiveSales } from './live-sales.js';
import { LiveSnapshots } from './live-snapshots.js';

/** Maximum number of consoles that follow one api. */
const CONSOLE_STREAMS_MAX = 100;

/** @param own the last report of this api. @throws OperationalError redis */
export async function openLive(connections: Connections<'mysql' | 'redis' | 'operators'>, own: () => OwnReport | null) {
  const { config, clock, log } = connections;
  const redis = await connections.redis();
  const mysql = connections.mysql();
  const keptMs = config.operators.consoleHistoryMs;
  const answers = createAnswerHistory(redis, keptMs);
  const landed = createLandedOrders(mysql);
  const sales = new LiveSales({
    sales: createSaleRepository(mysql),
    stock: createStockStore(redis, log),
    batches: createBatchStore(redis),
    answers,
    landed,
    clock,
  });
  const programs = createProgramReports(redis, clock);
  const live = new LiveSnapshots({ sales, programs, own, clock, log }, CONSOLE_STREAMS_MAX);
  return { live, saleSeconds: { landed, answers, keptMs } };
}
export type LiveServices = Awaited<ReturnType<typeof openLive>>;

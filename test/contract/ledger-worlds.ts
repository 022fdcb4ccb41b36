import type { RepairLedger } from '../../src/core/ports/repair-ledger.js';
import type { SettlementLedger } from '../../src/core/ports/settlement-ledger.js';
import type { SaleCardCache } from '../../src/core/ports/sale-card-cache.js';
import type { TransferLedger } from '../../src/core/ports/transfer-ledger.js';
import type { BucketRef, SaleLedger, StockLedger } from '../../src/core/ports/stock-ledger.js';
import { silentLog } from '../../src/core/ports/log.js';
import { connectRedis, serverNowMs } from '../../src/redis/connection.js';
import { bucketKeys } from '../../src/redis/keys.js';
import { createRepairLedger } from '../../src/redis/repair-ledger.js';
import { createSaleCardCache } from '../../src/redis/sale-card-cache.js';
import { createSaleLedger } from '../../src/redis/sale-ledger.js';
import { createSettlementLedger } from '../../src/redis/settlement-ledger.js';
import { createStockLedger } from '../../src/redis/stock-ledger.js';
import { createTransferLedger } from '../../src/redis/transfer-ledger.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryLedger } from '../helpers/memory/memory-ledger.js';
import { MemoryRepairLedger } from '../helpers/memory/memory-repair-ledger.js';
import { MemorySaleCardCache } from '../helpers/memory/memory-sale-card-cache.js';
import { MemoryTransfers } from '../helpers/memory/memory-transfers.js';
import { onRedisCluster } from '../helpers/redis-cluster.js';
import { saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import type { Sale } from '../../src/core/sale.js';

/** A ledger as the contract suites see it: Redis and the one in memory look the same from here. */
export interface LedgerWorld {
  readonly stock: StockLedger;
  readonly sales: SaleLedger;
  readonly settlement: SettlementLedger;
  readonly cards: SaleCardCache;
  readonly repair: RepairLedger;
  readonly transfers: TransferLedger;
  /** Now on the clock of the ledger, ms. */
  nowMs(): Promise<number>;
  /** Lets time pass. */
  elapse(ms: number): Promise<void>;
  /** From now on the bucket is on another server than before, with all its data. */
  restart(ref: BucketRef): Promise<void>;
  /** The repair of the bucket has let its lease run out. */
  endLease(ref: BucketRef): Promise<void>;
  close(): Promise<void>;
}

/** Life of a card in these worlds; short, so that a test can see its end; long enough for a busy machine. */
export const CARD_TTL_MS = 600;

async function memoryWorld(): Promise<LedgerWorld> {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ clock });
  return {
    stock: ledger,
    sales: ledger,
    settlement: ledger,
    cards: new MemorySaleCardCache(clock, { ttlMs: CARD_TTL_MS }),
    repair: new MemoryRepairLedger(ledger),
    transfers: new MemoryTransfers(ledger),
    nowMs: async () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    restart: async () => void ledger.restart(),
    endLease: async (ref) => {
      const { repair } = ledger.bucket(ref);
      if (repair) repair.untilMs = clock.nowMs();
    },
    close: async () => undefined,
  };
}

async function redisWorld(url = stackEnv().REDIS_URL): Promise<LedgerWorld> {
  const connection = await connectRedis({ url, replyTimeoutMs: 5000, connectTimeoutMs: 3000 }, silentLog);
  return {
    stock: createStockLedger(connection, silentLog),
    sales: createSaleLedger(connection),
    settlement: createSettlementLedger(connection),
    cards: createSaleCardCache(connection, { ttlMs: CARD_TTL_MS }),
    repair: createRepairLedger(connection),
    transfers: createTransferLedger(connection),
    nowMs: () => serverNowMs(connection.redis, 'any'), // all servers of a test are on this host
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    restart: async (ref) => {
      const { sale } = bucketKeys(ref); // the server cannot get another name here, so the bucket remembers another one
      for (const stamp of ['run_id', 'repair_run']) {
        if (await connection.redis.hexists(sale, stamp)) await connection.redis.hset(sale, stamp, 'another');
      }
    },
    endLease: async (ref) => void (await connection.redis.hset(bucketKeys(ref).sale, 'repair_until', 1)),
    close: () => connection.close(),
  };
}

export const LEDGER_WORLDS = [
  ['memory', memoryWorld],
  ['redis', () => redisWorld()],
  ['a Redis cluster', () => onRedisCluster(redisWorld)],
] as const;

/** Warms a fresh sale and opens it; its window lies wide around now on the ledger's clock. */
export async function openSale(world: LedgerWorld, parts: Partial<Sale> = {}): Promise<Sale> {
  const sale = saleOf(parts, await world.nowMs());
  await world.sales.warm(sale);
  await world.sales.gate(sale, 'open');
  return sale;
}

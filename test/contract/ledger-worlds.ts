import type { SettlementLedger } from '../../src/ports/settlement-ledger.js';
import type { SaleCardCache } from '../../src/ports/sale-card-cache.js';
import type { SaleLedger, StockLedger } from '../../src/ports/stock-ledger.js';
import { silentLog } from '../../src/ports/log.js';
import { connectRedis } from '../../src/redis/connection.js';
import { createSaleCardCache } from '../../src/redis/sale-card-cache.js';
import { createSaleLedger } from '../../src/redis/sale-ledger.js';
import { createSettlementLedger } from '../../src/redis/settlement-ledger.js';
import { createStockLedger } from '../../src/redis/stock-ledger.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryLedger } from '../helpers/memory/memory-ledger.js';
import { MemorySaleCardCache } from '../helpers/memory/memory-sale-card-cache.js';
import { saleOf } from '../helpers/sales.js';
import { stackEnv } from '../helpers/stack-env.js';
import type { Sale } from '../../src/domain/sale.js';

/** A ledger as the contract suites see it: Redis and the one in memory look the same from here. */
export interface LedgerWorld {
  readonly stock: StockLedger;
  readonly sales: SaleLedger;
  readonly settlement: SettlementLedger;
  readonly cards: SaleCardCache;
  /** Now on the clock of the ledger, ms. */
  nowMs(): Promise<number>;
  /** Lets time pass. */
  elapse(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Life of a card in these worlds; short, so that a test can see its end. */
export const CARD_TTL_MS = 200;

async function memoryWorld(): Promise<LedgerWorld> {
  const clock = new ManualClock();
  const ledger = new MemoryLedger({ clock });
  return {
    stock: ledger,
    sales: ledger,
    settlement: ledger,
    cards: new MemorySaleCardCache(clock, { ttlMs: CARD_TTL_MS }),
    nowMs: async () => clock.nowMs(),
    elapse: (ms) => clock.sleep(ms),
    close: async () => undefined,
  };
}

async function redisWorld(): Promise<LedgerWorld> {
  const options = { url: stackEnv().REDIS_URL, replyTimeoutMs: 5000, connectTimeoutMs: 3000 };
  const connection = await connectRedis(options, silentLog);
  return {
    stock: createStockLedger(connection, silentLog),
    sales: createSaleLedger(connection),
    settlement: createSettlementLedger(connection),
    cards: createSaleCardCache(connection, { ttlMs: CARD_TTL_MS }),
    nowMs: async () => {
      const [seconds, micros] = await connection.redis.time();
      return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    },
    elapse: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
    close: () => connection.close(),
  };
}

export const LEDGER_WORLDS = [
  ['memory', memoryWorld],
  ['redis', redisWorld],
] as const;

/** Warms a fresh sale and opens it; its window lies wide around now on the ledger's clock. */
export async function openSale(world: LedgerWorld, parts: Partial<Sale> = {}): Promise<Sale> {
  const sale = saleOf(parts, await world.nowMs());
  await world.sales.warm(sale);
  await world.sales.gate(sale, 'open');
  return sale;
}

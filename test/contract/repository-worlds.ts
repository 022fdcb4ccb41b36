import { randomBytes } from 'node:crypto';
import type { NewSale, Sale } from '../../src/core/sale.js';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createDeadLetterParking, createTracedDeadLetters } from '../../src/mysql/dead-letters.js';
import { createDeadLetterStore, type DeadLetterStore } from '../../src/operate/dead-letters/dead-letter-store.js';
import { migrate } from '../../src/mysql/migrate.js';
import { createOrderRepository } from '../../src/mysql/order-repository.js';
import { openMysqlPool, type MysqlPool } from '../../src/mysql/pool.js';
import { createRepairRepository } from '../../src/mysql/repair-repository.js';
import { createRetirementRepository } from '../../src/mysql/retirement-repository.js';
import { createSaleRepository } from '../../src/mysql/sale-repository.js';
import { createWorkerSlots } from '../../src/mysql/worker-slots.js';
import type { Clock } from '../../src/core/ports/clock.js';
import type { DeadLetterParking, TracedDeadLetters } from '../../src/core/ports/dead-letters.js';
import type { OrderRepository, WorkerSlots } from '../../src/core/ports/order-repository.js';
import type { BatchRecorded } from '../../src/core/ports/outbox.js';
import type { RepairRepository } from '../../src/core/ports/repair-stores.js';
import type { RetirementRepository, SaleRepository } from '../../src/core/ports/sale-repository.js';
import type { Release } from '../../src/core/ports/batch-store.js';
import { ManualClock } from '../helpers/memory/manual-clock.js';
import { MemoryRepositories } from '../helpers/memory/memory-repositories.js';
import { MemoryDeadLetters, type Audited } from '../helpers/memory/memory-dead-letters.js';
import { MemoryRepairRepository } from '../helpers/memory/memory-repair-repository.js';
import { MemoryWorkerSlots } from '../helpers/memory/memory-worker-slots.js';
import { mysqlIn } from '../helpers/servers.js';
import { stackEnv } from '../helpers/stack-env.js';

/** Repositories for the contract suites, on MySQL and in memory. */
export interface RepositoryWorld {
  readonly orders: OrderRepository;
  readonly sales: SaleRepository;
  readonly retirement: RetirementRepository;
  readonly deadLetters: DeadLetterParking & DeadLetterStore;
  /** The same dead letters, as a purchase's trace reads them. */
  readonly tracedDeadLetters: TracedDeadLetters;
  readonly repair: RepairRepository;
  readonly slots: WorkerSlots;
  readonly clock: Clock;
  /** Raises the epoch as a repair would. */
  raiseEpoch(saleId: string): Promise<void>;
  /** Ends the row and lowers `sold`, as a cancellation would. */
  cancelOrder(orderId: string): Promise<void>;
  /** Ends the row as an expiry would, whatever its deadline. */
  expireOrder(orderId: string): Promise<void>;
  /** Outbox rows of a batch. */
  outboxOf(batchId: string): Promise<{ readonly recorded: BatchRecorded[]; readonly releases: Release[] }>;
  /** Audit log of a subject, oldest first. */
  auditOf(subject: string): Promise<Audited[]>;
  /** Makes MySQL refuse the orders of this buyer, as a constraint would. Rows in state `failed` are accepted. */
  refuseOrdersOf(userId: string): Promise<void>;
  /** Violations of I1 and I2 in this sale. */
  violations(saleId: string): Promise<string[]>;
  close(): Promise<void>;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
    }),
};

const LIVE = "state IN ('pending_payment', 'paid')";
/** Queries that check the invariants of one sale. */
const INVARIANTS = [
  `SELECT CONCAT('I1 sold ', sold, ' of ', stock) AS broken FROM sales s WHERE id = :sale AND (sold > stock OR sold <>
     (SELECT COALESCE(SUM(quantity), 0) FROM orders o WHERE o.sale_id = s.id AND ${LIVE}))`,
  `SELECT CONCAT('I2 limit of ', o.user_id) AS broken FROM orders o JOIN sales s ON s.id = o.sale_id
     WHERE o.sale_id = :sale AND o.${LIVE} GROUP BY o.user_id HAVING SUM(o.quantity) > MAX(s.limit_per_buyer)`,
  `SELECT CONCAT('I2 twice ', user_id, '/', request_id) AS broken FROM orders WHERE sale_id = :sale
     GROUP BY user_id, request_id HAVING COUNT(*) > 1`,
];

export interface MysqlWorld extends RepositoryWorld {
  readonly pool: MysqlPool;
}

async function endOrder(pool: MysqlPool, orderId: string, state: 'cancelled' | 'expired'): Promise<void> {
  await pool.transaction(async (tx) => {
    await tx.execute(`UPDATE orders SET state = ? WHERE id = ? AND ${LIVE}`, [state, orderId]);
    const sql = 'UPDATE sales s JOIN orders o ON o.sale_id = s.id SET s.sold = s.sold - o.quantity WHERE o.id = ?';
    await tx.execute(sql, [orderId]);
  });
}

export async function mysqlWorld(poolMax = 6, url = stackEnv().MYSQL_URL): Promise<MysqlWorld> {
  const server = { ...mysqlIn(stackEnv()), url };
  await migrate(server);
  // Hundreds of calls wait for few connections here, and other suites use the disk.
  const pool = openMysqlPool({ ...server, poolMax, queryTimeoutMs: 5000, poolWaitMs: 60_000, lockWaitSeconds: 1 });
  const triggers: string[] = [];
  return {
    pool,
    orders: createOrderRepository(pool),
    sales: createSaleRepository(pool),
    retirement: createRetirementRepository(pool),
    deadLetters: { ...createDeadLetterParking(pool), ...createDeadLetterStore(pool) },
    tracedDeadLetters: createTracedDeadLetters(pool),
    repair: createRepairRepository(pool),
    slots: createWorkerSlots(pool),
    clock: systemClock,
    async raiseEpoch(saleId) {
      await pool.execute('UPDATE sales SET epoch = epoch + 1 WHERE id = ?', [saleId]);
    },
    cancelOrder: (orderId) => endOrder(pool, orderId, 'cancelled'),
    expireOrder: (orderId) => endOrder(pool, orderId, 'expired'),
    async outboxOf(batchId) {
      const rows = await pool.query<{ kind: string; payload: string }>('SELECT * FROM outbox WHERE `key` = ?', [
        batchId,
      ]);
      const payloads = (kind: string): unknown[] =>
        rows.filter((row) => row.kind === kind).map(({ payload }) => JSON.parse(payload));
      return {
        recorded: payloads('batch_recorded') as BatchRecorded[],
        releases: payloads('release').flat() as Release[],
      };
    },
    async auditOf(subject) {
      const entries = await createAuditLog(pool).list({ subject }, { max: 1000 });
      return entries.reverse().map(({ actor, action, before, after }) => ({ actor, action, subject, before, after }));
    },
    async refuseOrdersOf(userId) {
      const name = `refuse_${randomBytes(6).toString('hex')}`;
      await pool.execute(
        `CREATE TRIGGER ${name} BEFORE INSERT ON orders FOR EACH ROW IF NEW.user_id = '${userId}' AND NEW.state <> 'failed'
           THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by a test'; END IF`,
      );
      triggers.push(name);
    },
    async violations(saleId) {
      const found: string[] = [];
      for (const sql of INVARIANTS) {
        const rows = await pool.query<{ broken: string }>(sql.replaceAll(':sale', saleId));
        found.push(...rows.map(({ broken }) => broken));
      }
      return found;
    },
    async close() {
      for (const name of triggers) await pool.execute(`DROP TRIGGER ${name}`);
      await pool.close();
    },
  };
}

/** Copies the migrated tables for a dozen files, because running all migrations takes seconds. */
async function copySchema(server: MysqlPool, name: string): Promise<void> {
  await migrate(mysqlIn(stackEnv()));
  const sql = 'SELECT table_name AS `table` FROM information_schema.tables WHERE table_schema = DATABASE()';
  for (const { table } of await server.query<{ table: string }>(sql)) {
    await server.execute(`CREATE TABLE ${name}.${table} LIKE ${table}`);
    if (table.startsWith('knex_')) await server.execute(`INSERT INTO ${name}.${table} SELECT * FROM ${table}`);
  }
  await server.execute(`INSERT INTO ${name}.worker_slots (slot) SELECT slot FROM worker_slots`);
  await server.execute(`INSERT INTO ${name}.sale_calendar (id) SELECT id FROM sale_calendar`);
}

/** Opens repositories on their own database, for tests of whole tables. The test user may create `seckill_…`. */
export async function ownMysqlWorld(poolMax = 6): Promise<MysqlWorld & { readonly url: string }> {
  const server = openMysqlPool({ ...mysqlIn(stackEnv()), poolMax: 1, queryTimeoutMs: 20_000 });
  const name = `seckill_own_${randomBytes(6).toString('hex')}`;
  await server.execute(`CREATE DATABASE ${name}`);
  await copySchema(server, name);
  const { href: url } = Object.assign(new URL(stackEnv().MYSQL_URL), { pathname: `/${name}` });
  const world = await mysqlWorld(poolMax, url);
  return {
    ...world,
    url,
    async close() {
      await world.close();
      await server.execute(`DROP DATABASE ${name}`);
      await server.close();
    },
  };
}

export async function memoryWorld(
  clock: Clock = new ManualClock(),
): Promise<RepositoryWorld & { readonly repositories: MemoryRepositories }> {
  const repositories = new MemoryRepositories({ clock });
  const deadLetters = new MemoryDeadLetters(clock);
  return {
    repositories,
    orders: repositories,
    sales: repositories,
    retirement: repositories,
    deadLetters,
    tracedDeadLetters: deadLetters,
    repair: new MemoryRepairRepository(repositories, deadLetters),
    slots: new MemoryWorkerSlots(clock),
    clock,
    async raiseEpoch(saleId) {
      const sale = (await repositories.find(saleId)) as Sale;
      repositories.putSale({ ...sale, epoch: sale.epoch + 1 });
    },
    cancelOrder: async (orderId) => repositories.endOrder(orderId, 'cancelled'),
    expireOrder: async (orderId) => repositories.endOrder(orderId, 'expired'),
    async outboxOf(batchId) {
      const rows = repositories.outboxRows.filter(({ key }) => key === batchId);
      return {
        recorded: rows.flatMap((row) => (row.kind === 'batch_recorded' && row.payload ? [row.payload] : [])),
        releases: rows.flatMap((row) => (row.kind === 'release' && row.payload ? row.payload : [])),
      };
    },
    refuseOrdersOf: async (userId) => void repositories.refusedBuyers.add(userId),
    auditOf: async (subject) =>
      [...repositories.audited, ...deadLetters.audited].filter((entry) => entry.subject === subject),
    async violations(saleId) {
      const sale = (await repositories.find(saleId)) as Sale;
      const live = repositories.allOrders.filter(
        (o) => o.saleId === saleId && ['pending_payment', 'paid'].includes(o.state),
      );
      const units = live.reduce((sum, { quantity }) => sum + quantity, 0);
      return sale.sold === units && units <= sale.stock ? [] : [`I1 sold ${sale.sold} of ${sale.stock}, live ${units}`];
    },
    close: async () => undefined,
  };
}

export const WORLDS = [
  ['memory', () => memoryWorld()],
  ['mysql', () => mysqlWorld()],
] as const;

/** Creates a sale for one test: ten units at 19.99, two per buyer. */
export function newSale(parts: Partial<NewSale> = {}): NewSale {
  const nowMs = Date.now();
  return {
    sku: `sku-${randomBytes(4).toString('hex')}`,
    title: 'A thing',
    priceCents: 1999,
    currency: 'EUR',
    stock: 10,
    limitPerBuyer: 2,
    buckets: 1,
    opensAtMs: nowMs - 60_000,
    closesAtMs: nowMs + 3_600_000,
    warmBeforeMs: null,
    paymentWindowMs: null,
    ...parts,
  };
}

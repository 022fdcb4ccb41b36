import { randomBytes } from 'node:crypto';
import { composeOrderId } from '../../src/core/order-id.js';
import type { Metadata } from '../../src/core/metadata.js';
import type { Order } from '../../src/core/order.js';
import type { NewSale, Sale } from '../../src/core/sale.js';
import { createAuditLog } from '../../src/mysql/audit-log.js';
import { createOrderArchive } from '../../src/mysql/order-archive.js';
import { createOrderSearch } from '../../src/mysql/order-search.js';
import { createOrderTransitions } from '../../src/mysql/order-transitions.js';
import { createPaymentAttempts } from '../../src/mysql/payment-attempts.js';
import { createPaymentCases } from '../../src/mysql/payment-cases.js';
import { createRefundRepository } from '../../src/mysql/refund-repository.js';
import { silentLog } from '../helpers/silent-log.js';
import type { AuditEntry } from '../../src/core/ports/audit-log.js';
import type { OrderArchive } from '../../src/core/ports/order-archive.js';
import type { OrderSearch } from '../../src/core/ports/order-search.js';
import type { OrderTransitions } from '../../src/core/ports/order-transitions.js';
import type { OrdersMoved } from '../../src/core/ports/outbox.js';
import type { PaymentAttempts } from '../../src/core/ports/payment-attempts.js';
import type { PaymentCases } from '../../src/core/ports/payment-cases.js';
import { createPaymentCaseStore, type PaymentCaseStore } from '../../src/operate/refunds/payment-case-store.js';
import { createRefundStore, type RefundStore } from '../../src/operate/refunds/refund-store.js';
import type { RefundRepository } from '../../src/core/ports/refund-repository.js';
import type { Release } from '../../src/core/ports/batch-store.js';
import { MemoryOrderTransitions } from '../helpers/memory/memory-order-transitions.js';
import { MemoryPaymentCases } from '../helpers/memory/memory-payment-cases.js';
import { MemoryPaymentAttempts } from '../helpers/memory/memory-payment-attempts.js';
import { MemoryRefundRepository } from '../helpers/memory/memory-refund-repository.js';
import { batchOf, purchasesOf } from '../helpers/sales.js';
import {
  memoryWorld,
  newSale,
  ownMysqlWorld,
  systemClock,
  type MysqlWorld,
  type RepositoryWorld,
} from './repository-worlds.js';

interface StoredPayment {
  readonly paymentId: string;
  readonly orderId: string;
  readonly amountCents: number;
  /** The reason for owing the money back, or null if the money paid the order. */
  readonly refund: string | null;
}

/** The repositories with the state changes of orders, and their writes. */
export interface MovesWorld extends RepositoryWorld {
  readonly transitions: OrderTransitions;
  readonly refunds: RefundRepository & Pick<RefundStore, 'list' | 'takeOn'>;
  readonly attempts: PaymentAttempts;
  readonly cases: PaymentCases & PaymentCaseStore;
  /** Adds an open row beside other rows, for an order in any state, as releases before 1.1.0 did. */
  leaveOpenAttempt(orderId: string, key: string): Promise<void>;
  /** Advances the clock. */
  elapse(ms: number): Promise<void>;
  /** Audit log of refunds, oldest first. */
  audited(): Promise<AuditEntry[]>;
  payments(): Promise<StoredPayment[]>;
  moved(): Promise<OrdersMoved[]>;
  releases(): Promise<Release[]>;
}

export interface MysqlMoves extends MovesWorld, MysqlWorld {
  readonly archive: OrderArchive;
  readonly search: OrderSearch;
}

/** Own database, because a sweep expires every due order, even orders of other test files. */
export async function mysqlMoves(opened?: MysqlWorld): Promise<MysqlMoves> {
  const world = opened ?? (await ownMysqlWorld(8));
  const { pool } = world;
  const payloads = async (kind: string): Promise<unknown[]> =>
    (await pool.query<{ payload: string }>('SELECT payload FROM outbox WHERE kind = ? ORDER BY id', [kind])).map(
      ({ payload }): unknown => JSON.parse(payload),
    );
  return {
    ...world,
    transitions: createOrderTransitions(pool, { clock: systemClock, log: silentLog }),
    refunds: { ...createRefundRepository(pool), ...createRefundStore(pool) },
    attempts: createPaymentAttempts(pool, { clock: systemClock }),
    cases: { ...createPaymentCases(pool), ...createPaymentCaseStore(pool) },
    async leaveOpenAttempt(orderId, key) {
      await pool.execute('INSERT INTO payment_attempts (order_id, `key`, amount_cents) VALUES (?, ?, 1)', [
        orderId,
        key,
      ]);
    },
    elapse: (ms) => systemClock.sleep(ms),
    archive: createOrderArchive(pool, 0),
    search: createOrderSearch(pool, 3),
    async audited() {
      const entries = await createAuditLog(pool).list({}, { max: 100 });
      const ofMoney = entries.filter(({ action }) => /^(refund|payment_case)\./.test(action));
      return ofMoney.reverse().map(({ actor, action, subject, before, after }) => {
        return { actor, action, subject, before, after };
      });
    },
    async payments() {
      const rows = await pool.query<{ id: string; order_id: string; cents: string; reason: string | null }>(
        'SELECT p.payment_id AS id, p.order_id, p.amount_cents AS cents, r.reason FROM payments p' +
          ' LEFT JOIN refunds r ON r.payment_id = p.payment_id AND r.order_id = p.order_id' +
          " AND r.amount_cents = p.amount_cents AND r.state = 'due'",
      );
      return rows.map((row) => ({
        paymentId: row.id,
        orderId: row.order_id,
        amountCents: Number(row.cents),
        refund: row.reason,
      }));
    },
    moved: async () => (await payloads('orders_moved')) as OrdersMoved[],
    releases: async () => (await payloads('release')).flat() as Release[],
  };
}

async function memoryMoves(): Promise<MovesWorld> {
  const world = await memoryWorld();
  const transitions = new MemoryOrderTransitions(world.repositories);
  const refunds = new MemoryRefundRepository(transitions, world.clock);
  const attempts = new MemoryPaymentAttempts(world.clock, world.repositories);
  const cases = new MemoryPaymentCases(transitions, world.clock);
  const rows = () => world.repositories.outboxRows;
  return {
    ...world,
    transitions,
    refunds,
    attempts,
    cases,
    leaveOpenAttempt: async (orderId, key) => attempts.put(orderId, key, 1),
    elapse: (ms) => world.clock.sleep(ms),
    audited: async () => [...refunds.audited, ...cases.audited],
    payments: async () => [...transitions.payments.values()],
    moved: async () => rows().flatMap((row) => (row.kind === 'orders_moved' ? [row.payload as OrdersMoved] : [])),
    releases: async () => rows().flatMap((row) => (row.kind === 'release' ? (row.payload as readonly Release[]) : [])),
  };
}

export const MOVES_WORLDS = [
  ['memory', memoryMoves],
  ['mysql', mysqlMoves],
] as const;

/** A payment window that outlasts every test. */
export const LATER_MS = 900_000;
/** A payment window that ended a minute ago. */
export const DUE_MS = -60_000;

export interface OrdersParts {
  readonly sale?: Partial<NewSale>;
  readonly paymentWindowMs?: number;
  /** Id of the first order. */
  readonly metadata?: Metadata;
  readonly traceId?: string;
}

/** Creates a sale with one unpaid order per purchase, in the notation of `purchasesOf`. */
export async function ordersIn(
  world: MovesWorld,
  texts: readonly string[],
  { sale: parts = {}, paymentWindowMs = LATER_MS, ...noted }: OrdersParts = {},
): Promise<{ readonly sale: Sale; readonly orders: Order[] }> {
  const sale = await world.sales.create(newSale({ stock: 1000, limitPerBuyer: 10, ...parts }));
  const { saleId } = sale;
  const purchases = purchasesOf(...texts);
  const batch = batchOf(
    { saleId },
    purchases.map((one, index) => (index === 0 ? { ...one, ...noted } : one)),
  );
  const fromMs = world.clock.nowMs() - Math.floor(Math.random() * 1e9);
  const rows = batch.purchases.map((purchase, index) => {
    const orderId = composeOrderId(fromMs + index, 9, purchase.userId, Math.floor(Math.random() * 256));
    return { orderId, batch, purchase, failure: null };
  });
  const terms = await world.orders.termsOf([saleId]);
  const plan = { terms, orders: rows, releases: [], oneByOne: new Set<string>(), paymentWindowMs };
  const { outcome } = await world.orders.write(plan);
  if (outcome !== 'written') throw new Error(`write: ${outcome}`);
  const found = await Promise.all(rows.map(({ orderId }) => world.orders.findOrder(orderId)));
  return { sale, orders: found as Order[] };
}

export const paymentOf = (order: Order, parts: { paymentId?: string; amountCents?: number } = {}) => ({
  paymentId: `pay-${randomBytes(9).toString('base64url')}`,
  amountCents: order.amountCents,
  ...parts,
});

import { ConfigError } from '../core/config/load.js';
import type { Section } from '../core/config/schema.js';
import type { MysqlPool, SqlValue, Transaction } from '../mysql/pool.js';
import type { DeliverySource } from '../core/ports/delivery-source.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository, WriteOutcome } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { HalfMessage, PurchaseChannel } from '../core/ports/channels.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { TransferStore } from '../core/ports/transfer-store.js';
import type { PurchaseGate } from '../purchase/gate.js';
import {
  NO_REBUILD_POINTS,
  REBUILD_FAIL_POINTS,
  rebuildFailPoints,
  type RebuildFailPoints,
} from './rebuild-fail-points.js';

/**
 * Places between two steps where a test may stop a program: `FAILPOINT=<name>[:n]` acts at the n-th pass. They are put
 * around the ports, so no use case and no adapter knows of them; without the variable nothing is wrapped. A point named
 * `drop_…` stops nobody: the call is not made, or its reply is lost.
 */
export const API_FAIL_POINTS = [
  'after_precheck',
  'after_half',
  'after_deduct',
  'after_commit',
  'before_answer',
  'before_resubmit',
  'drop_half_reply',
  'drop_commit',
  'drop_rollback',
  'check_before_resolve',
  'check_after_resolve',
  'after_transfer_out',
  'after_transfer_in',
  ...REBUILD_FAIL_POINTS,
] as const;
export const WORKER_FAIL_POINTS = [
  'worker_after_receive',
  'worker_after_insert',
  'worker_before_commit',
  'worker_after_commit',
  'worker_after_mark_recorded',
] as const;
export const KEEPER_FAIL_POINTS = [
  'outbox_after_publish',
  'release_before_done',
  'expire_after_commit',
  'compensate_after_row',
  ...REBUILD_FAIL_POINTS,
] as const;

type Settings = Section<'failPoint'>;
type Pass<P extends string> = (point: P) => Promise<void>;

/** One point that will act. */
interface Armed<P extends string> {
  /** To be awaited where the program may stop. */
  readonly pass: Pass<P>;
  /** Whether this call, or its reply, is lost. */
  readonly loses: (point: P) => boolean;
}

type Decider = Pick<StockStore, 'resolve'>;
type Gate = Pick<PurchaseGate, 'refuseEarly' | 'enter'>;

const same = <T>(part: T): T => part;
const forever = new Promise<never>(() => undefined);

export interface ApiFailPoints extends RebuildFailPoints {
  store(store: StockStore): StockStore;
  /** What a check-back asks. */
  checked(store: Decider): Decider;
  channel(channel: PurchaseChannel): PurchaseChannel;
  gate(gate: Gate): Gate;
  /** Units that move between buckets. */
  transfers(store: TransferStore): TransferStore;
}

/** @throws ConfigError for a point that the api does not have */
export function apiFailPoints(settings: Settings, log: Log): ApiFailPoints {
  const armed = arm(API_FAIL_POINTS, settings, log);
  if (armed === null)
    return { store: same, checked: same, channel: same, gate: same, transfers: same, ...NO_REBUILD_POINTS };
  const { pass, loses } = armed;
  return {
    store: (store) => ({
      ...store,
      precheck: (ref, purchases) => passing(store.precheck(ref, purchases), 'after_precheck', pass),
      deduct: (batch) => passing(store.deduct(batch), 'after_deduct', pass),
    }),
    checked: (store) => ({
      async resolve(batch) {
        await pass('check_before_resolve');
        return passing(store.resolve(batch), 'check_after_resolve', pass);
      },
    }),
    channel: (channel) => ({
      async sendHalf(batch) {
        const half = await passing(channel.sendHalf(batch), 'after_half', pass);
        if (typeof half === 'string') return half;
        return loses('drop_half_reply') ? 'outcome_unknown' : halfWith(half, armed);
      },
    }),
    gate: (gate) => ({
      refuseEarly: (...request) => gate.refuseEarly(...request),
      enter: (request) => passing(gate.enter(request), 'before_answer', pass),
    }),
    ...rebuildFailPoints(pass),
    transfers: (store) => ({
      ...store,
      async transferOut(...lend) {
        const lent = await store.transferOut(...lend);
        if (lent.outcome === 'transferred') await pass('after_transfer_out');
        return lent;
      },
      async transferIn(...borrow) {
        const borrowed = await store.transferIn(...borrow);
        if (borrowed.outcome === 'received') await pass('after_transfer_in');
        return borrowed;
      },
    }),
  };
}

function halfWith(half: HalfMessage, { pass, loses }: Armed<(typeof API_FAIL_POINTS)[number]>): HalfMessage {
  return {
    async commit() {
      if (!loses('drop_commit')) await passing(half.commit(), 'after_commit', pass);
    },
    async rollback() {
      if (loses('drop_rollback')) return false;
      const confirmed = await half.rollback();
      if (confirmed) await pass('before_resubmit');
      return confirmed;
    },
  };
}

export interface WorkerFailPoints {
  pool(pool: MysqlPool): MysqlPool;
  repository(repository: OrderRepository): OrderRepository;
  store(store: BatchStore): BatchStore;
  source(source: DeliverySource): DeliverySource;
}

/** @throws ConfigError for a point that the worker does not have */
export function workerFailPoints(settings: Settings, log: Log): WorkerFailPoints {
  const armed = arm(WORKER_FAIL_POINTS, settings, log);
  if (armed === null) return { pool: same, repository: same, store: same, source: same };
  const { pass } = armed;
  return {
    pool: (pool) => ({
      query: <Row>(sql: string, values?: readonly SqlValue[]) => pool.query<Row>(sql, values),
      execute: (sql, values) => pool.execute(sql, values),
      probe: () => pool.probe(),
      close: () => pool.close(),
      transaction: (work) =>
        pool.transaction((tx) => passing(work(afterInsert(tx, pass)), 'worker_before_commit', pass)),
    }),
    repository: (repository) => ({
      ...repository,
      write: (plan) => committed(repository.write(plan), 'worker_after_commit', pass),
    }),
    store: (store) => ({
      ...store,
      markRecorded: (all) => passing(store.markRecorded(all), 'worker_after_mark_recorded', pass),
    }),
    source: (source) => ({
      async receive(max) {
        const deliveries = await source.receive(max);
        if (deliveries.length > 0) await pass('worker_after_receive');
        return deliveries;
      },
    }),
  };
}

function afterInsert(tx: Transaction, pass: Pass<(typeof WORKER_FAIL_POINTS)[number]>): Transaction {
  return {
    ...tx,
    async execute(sql, values) {
      const written = await tx.execute(sql, values);
      if (sql.startsWith('INSERT INTO orders')) await pass('worker_after_insert');
      return written;
    },
  };
}

export interface KeeperFailPoints extends RebuildFailPoints {
  /** The outbox of rows that are published. */
  published(outbox: Outbox): Outbox;
  /** The outbox of rows whose units go back. */
  released(outbox: Outbox): Outbox;
  moves<M extends Pick<OrderTransitions, 'expire' | 'expireDue'>>(moves: M): M;
  /** The book that a purchase is given up in. */
  compensated(repository: OrderRepository): OrderRepository;
}

/** @throws ConfigError for a point that the keeper does not have */
export function keeperFailPoints(settings: Settings, log: Log): KeeperFailPoints {
  const armed = arm(KEEPER_FAIL_POINTS, settings, log);
  if (armed === null) {
    return { ...{ published: same, released: same, moves: same, compensated: same }, ...NO_REBUILD_POINTS };
  }
  const { pass } = armed;
  const beforeDone = (outbox: Outbox, point: (typeof KEEPER_FAIL_POINTS)[number]): Outbox => ({
    ...outbox,
    async markDone(outboxIds) {
      if (outboxIds.length > 0) await pass(point);
      await outbox.markDone(outboxIds);
    },
  });
  return {
    published: (outbox) => beforeDone(outbox, 'outbox_after_publish'),
    released: (outbox) => beforeDone(outbox, 'release_before_done'),
    compensated: (repository) => ({
      ...repository,
      write: (plan) => committed(repository.write(plan), 'compensate_after_row', pass),
    }),
    ...rebuildFailPoints(pass),
    moves: (moves) => ({
      ...moves,
      async expire(orderIds) {
        const ended = await moves.expire(orderIds);
        if (ended > 0) await pass('expire_after_commit');
        return ended;
      },
      async expireDue(max) {
        const ended = await moves.expireDue(max);
        if (ended > 0) await pass('expire_after_commit');
        return ended;
      },
    }),
  };
}

async function passing<T, P extends string>(call: Promise<T>, point: P, pass: Pass<P>): Promise<T> {
  const value = await call;
  await pass(point);
  return value;
}

/** A plan that was not written, for a row that was there already, is no step. */
async function committed<P extends string>(
  write: Promise<WriteOutcome>,
  point: P,
  pass: Pass<P>,
): Promise<WriteOutcome> {
  const written = await write;
  if (written.outcome === 'written') await pass(point);
  return written;
}

/** Null when nothing is to fail. */
function arm<P extends string>(points: readonly P[], { point: text, act }: Settings, log: Log): Armed<P> | null {
  if (text === '') return null;
  const [, name, count = '1'] = /^(\w+)(?::([1-9]\d*))?$/.exec(text) ?? [];
  const armed = points.find((point) => point === name);
  if (armed === undefined) throw new ConfigError([`FAILPOINT must be <name>[:n] with a name of ${points.join(', ')}`]);
  let left = Number(count);
  const isDue = (point: P): boolean => point === armed && --left === 0;
  return {
    async pass(point) {
      if (!isDue(point)) return;
      log.warn({ failPoint: point, act }, 'fail point reached');
      if (act === 'throw') throw new Error(`fail point ${point}`);
      if (act === 'kill') process.kill(process.pid, 'SIGKILL');
      await forever;
    },
    loses(point) {
      if (!isDue(point)) return false;
      log.warn({ failPoint: point, act: 'drop' }, 'fail point reached');
      return true;
    },
  };
}

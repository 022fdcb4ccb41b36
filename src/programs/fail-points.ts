import { ConfigError } from '../core/config/load.js';
import type { Section } from '../core/config/schema.js';
import type { MysqlPool, Transaction } from '../mysql/pool.js';
import type { DeliverySource, HalfMessage, PurchaseChannel } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { OrderRepository, WriteOutcome } from '../core/ports/order-repository.js';
import type { OrderTransitions } from '../core/ports/order-transitions.js';
import type { Outbox } from '../core/ports/outbox.js';
import type { BatchStore } from '../core/ports/batch-store.js';
import type { RepairRepository, RepairStore } from '../core/ports/repair-stores.js';
import type { StockStore } from '../core/ports/stock-store.js';
import type { TransferStore } from '../core/ports/transfer-store.js';
import type { PurchaseGate } from '../purchase/gate.js';

/**
 * Places between two steps where a test may stop a program. `FAILPOINT=<name>[:n]` kills the process at the n-th pass.
 * `FAILPOINT=<name>[:n]=throw` throws an error there. The points wrap the ports, so no use case and no adapter knows of
 * them. Without the variable nothing is wrapped. A point named `drop_…` does not stop the process: it skips the call, or
 * loses the reply. `poison_deduct` does not stop the process either, and it acts at every pass: the script of a batch with
 * a purchase whose key begins with `poison` gets a body that the script cannot decode.
 */
const REBUILD_FAIL_POINTS = ['repair_after_lock', 'repair_after_epoch', 'repair_after_stock'] as const;
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
  'poison_deduct',
  'check_before_resolve',
  'check_after_resolve',
  'after_transfer_out',
  'after_transfer_in',
  ...REBUILD_FAIL_POINTS,
] as const;
const WORKER_FAIL_POINTS = [
  'worker_after_receive',
  'worker_after_insert',
  'worker_before_commit',
  'worker_after_commit',
  'worker_after_mark_recorded',
] as const;
const KEEPER_FAIL_POINTS = [
  'outbox_after_publish',
  'release_before_done',
  'expire_after_commit',
  'compensate_after_row',
  ...REBUILD_FAIL_POINTS,
] as const;

type Settings = Section<'failPoint'>;
type RebuildPoint = (typeof REBUILD_FAIL_POINTS)[number];
type ApiPoint = (typeof API_FAIL_POINTS)[number];
type KeeperPoint = (typeof KEEPER_FAIL_POINTS)[number];

/** Wraps the stores that rebuild a sale in Redis and MySQL, for a repair by the keeper or a reshard by an api. */
const rebuildFailPoints = (at: FailPoints<RebuildPoint>) => ({
  rebuilt: <S extends Pick<RepairStore, 'lock' | 'swap'>>(store: S): S =>
    at.before(at.after(store, 'lock', 'repair_after_lock'), 'swap', 'repair_after_stock'),
  raised: <R extends Pick<RepairRepository, 'raiseEpoch'>>(repository: R): R =>
    at.after(repository, 'raiseEpoch', 'repair_after_epoch'),
});
export type RebuildFailPoints = ReturnType<typeof rebuildFailPoints>;

/** @throws ConfigError for a point that the api does not have */
export function apiFailPoints(settings: Settings, log: Log) {
  const at = new FailPoints(API_FAIL_POINTS, settings, log);
  return {
    store: (store: StockStore): StockStore =>
      at.after(at.after(poisoned(store, at), 'precheck', 'after_precheck'), 'deduct', 'after_deduct'),
    /** Wraps the store that a check-back asks. */
    checked: (store: Pick<StockStore, 'resolve'>): Pick<StockStore, 'resolve'> =>
      at.after(at.before(store, 'resolve', 'check_before_resolve'), 'resolve', 'check_after_resolve'),
    channel: (channel: PurchaseChannel): PurchaseChannel =>
      at.around(channel, 'sendHalf', async (send, batch) => {
        const half = await send(batch);
        await at.pass('after_half');
        if (typeof half === 'string') return half;
        return at.loses('drop_half_reply') ? 'outcome_unknown' : halfWithPoints(half, at);
      }),
    gate: (
      gate: Pick<PurchaseGate, 'countAttempt' | 'refuseEarly' | 'enter'>,
    ): Pick<PurchaseGate, 'countAttempt' | 'refuseEarly' | 'enter'> => at.after(gate, 'enter', 'before_answer'),
    /** Wraps transfers of units between buckets. A transfer that found no units does not count as a step. */
    transfers: (store: TransferStore): TransferStore =>
      at.after(
        at.after(store, 'transferOut', 'after_transfer_out', ({ outcome }) => outcome === 'transferred'),
        'transferIn',
        'after_transfer_in',
        ({ outcome }) => outcome === 'received',
      ),
    ...rebuildFailPoints(at),
  };
}
export type ApiFailPoints = ReturnType<typeof apiFailPoints>;

/** A body that Redis can never decode: half a surrogate pair. */
const POISON = String.raw`,"poison":"\ud800"}`;

const poisoned = (store: StockStore, at: FailPoints<ApiPoint>): StockStore =>
  at.around(store, 'deduct', (deduct, batch) => {
    const isPoisoned =
      at.isArmed('poison_deduct') && batch.purchases.some(({ requestId }) => requestId.startsWith('poison'));
    return deduct(isPoisoned ? { ...batch, body: batch.body.slice(0, -1) + POISON } : batch);
  });

function halfWithPoints(half: HalfMessage, at: FailPoints<ApiPoint>): HalfMessage {
  return {
    async commit() {
      if (at.loses('drop_commit')) return;
      await half.commit();
      await at.pass('after_commit');
    },
    async rollback() {
      if (at.loses('drop_rollback')) return false;
      const confirmed = await half.rollback();
      if (confirmed) await at.pass('before_resubmit');
      return confirmed;
    },
  };
}

/** Whether the plan was written. A plan whose row existed before does not count as a step. */
const isWritten = ({ outcome }: WriteOutcome): boolean => outcome === 'written';

/** @throws ConfigError for a point that the worker does not have */
export function workerFailPoints(settings: Settings, log: Log) {
  const at = new FailPoints(WORKER_FAIL_POINTS, settings, log);
  const inTransaction = (tx: Transaction): Transaction =>
    at.around(tx, 'execute', async (execute, sql, values) => {
      const written = await execute(sql, values);
      if (sql.startsWith('INSERT INTO orders')) await at.pass('worker_after_insert');
      return written;
    });
  return {
    pool: (pool: MysqlPool): MysqlPool =>
      at.around(pool, 'transaction', (transaction, work) =>
        transaction(async (tx) => {
          const worked = await work(inTransaction(tx));
          await at.pass('worker_before_commit');
          return worked;
        }),
      ),
    repository: (repository: OrderRepository): OrderRepository =>
      at.after(repository, 'write', 'worker_after_commit', isWritten),
    store: (store: BatchStore): BatchStore => at.after(store, 'markRecorded', 'worker_after_mark_recorded'),
    source: (source: DeliverySource): DeliverySource =>
      at.after(source, 'receive', 'worker_after_receive', (deliveries) => deliveries.length > 0),
  };
}

type Sweep = Pick<OrderTransitions, 'expire' | 'expireDue'>;

/** @throws ConfigError for a point that the keeper does not have */
export function keeperFailPoints(settings: Settings, log: Log) {
  const at = new FailPoints(KEEPER_FAIL_POINTS, settings, log);
  const beforeDone = (outbox: Outbox, point: KeeperPoint): Outbox =>
    at.around(outbox, 'markDone', async (markDone, outboxIds) => {
      if (outboxIds.length > 0) await at.pass(point);
      await markDone(outboxIds);
    });
  return {
    /** The outbox of rows to publish. */
    published: (outbox: Outbox): Outbox => beforeDone(outbox, 'outbox_after_publish'),
    /** The outbox of rows whose units go back. */
    released: (outbox: Outbox): Outbox => beforeDone(outbox, 'release_before_done'),
    transitions: <M extends Sweep>(transitions: M): M => {
      const hasEnded = (orders: number): boolean => orders > 0;
      const withSweep = at.after<Sweep, 'expireDue'>(transitions, 'expireDue', 'expire_after_commit', hasEnded);
      return at.after<Sweep, 'expire'>(withSweep, 'expire', 'expire_after_commit', hasEnded) as M;
    },
    /** The repository that records a purchase as given up. */
    compensated: (repository: OrderRepository): OrderRepository =>
      at.after(repository, 'write', 'compensate_after_row', isWritten),
    ...rebuildFailPoints(at),
  };
}
export type KeeperFailPoints = ReturnType<typeof keeperFailPoints>;

type Method = (...args: never[]) => Promise<unknown>;
type MethodOf<T, K extends keyof T> = Extract<T[K], Method>;
type AnswerOf<T, K extends keyof T> = Awaited<ReturnType<MethodOf<T, K>>>;

/** The points of one program. At most one point is armed. When none is armed, a wrapped part is the unchanged object. */
class FailPoints<P extends string> {
  readonly #armed: string | null;
  readonly #throws: boolean;
  readonly #log: Log;
  #passesLeft: number;

  /** @throws ConfigError for a point outside `names` */
  constructor(names: readonly P[], { point: text }: Settings, log: Log) {
    const [, name, count = '1', act] = /^(\w+)(?::([1-9]\d*))?(=throw)?$/.exec(text) ?? [];
    const armed = names.find((known) => known === name) ?? null;
    if (text !== '' && armed === null) {
      throw new ConfigError([`FAILPOINT must be <name>[:n][=throw] with a name of ${names.join(', ')}`]);
    }
    this.#armed = armed;
    this.#throws = act !== undefined;
    this.#log = log;
    this.#passesLeft = Number(count);
  }

  /** Whether a point that acts at every pass is armed. */
  isArmed(point: P): boolean {
    return point === this.#armed;
  }

  /** Stops the program here if the point is due. The caller awaits it. */
  async pass(point: P): Promise<void> {
    if (!this.#isDue(point)) return;
    this.#log.warn({ failPoint: point, act: this.#throws ? 'throw' : 'kill' }, 'fail point reached');
    if (this.#throws) throw new Error(`fail point ${point}`);
    process.kill(process.pid, 'SIGKILL');
    await new Promise<never>(() => undefined);
  }

  /** Whether this call, or its reply, gets lost. */
  loses(point: P): boolean {
    if (!this.#isDue(point)) return false;
    this.#log.warn({ failPoint: point, act: 'drop' }, 'fail point reached');
    return true;
  }

  /** Passes `point` before each call of one method. */
  before<T extends object, K extends keyof T>(part: T, name: K, point: P): T {
    const instead = async (call: Method, ...args: never[]): Promise<unknown> => {
      await this.pass(point);
      return call(...args);
    };
    return this.around(part, name, instead as never);
  }

  /** Passes `point` after each call of one method whose answer says that something was done. */
  after<T extends object, K extends keyof T>(
    part: T,
    name: K,
    point: P,
    isStep: (answer: AnswerOf<T, K>) => boolean = () => true,
  ): T {
    const instead = async (call: Method, ...args: never[]): Promise<unknown> => {
      const answer = await call(...args);
      if (isStep(answer as AnswerOf<T, K>)) await this.pass(point);
      return answer;
    };
    return this.around(part, name, instead as never);
  }

  /** Replaces one method of a part with `instead`, which receives the original method. */
  around<T extends object, K extends keyof T>(
    part: T,
    name: K,
    instead: (call: MethodOf<T, K>, ...args: Parameters<MethodOf<T, K>>) => ReturnType<MethodOf<T, K>>,
  ): T {
    if (this.#armed === null) return part;
    const call = (part[name] as Method).bind(part) as MethodOf<T, K>;
    const wrapped = (...args: Parameters<MethodOf<T, K>>) => instead(call, ...args);
    return new Proxy(part, {
      get(target, property) {
        if (property === name) return wrapped;
        const value: unknown = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value; // a class may have private fields
      },
    });
  }

  #isDue(point: P): boolean {
    return point === this.#armed && --this.#passesLeft === 0;
  }
}

import { writeSync } from 'node:fs';
import type { BatchStore } from '../../src/core/ports/batch-store.js';
import type { DeliverySource, HalfMessage, PurchaseChannel } from '../../src/core/ports/channels.js';
import type { OrderRepository } from '../../src/core/ports/order-repository.js';
import type { OrderTransitions } from '../../src/core/ports/order-transitions.js';
import type { Outbox } from '../../src/core/ports/outbox.js';
import type { RepairRepository, RepairStore } from '../../src/core/ports/repair-stores.js';
import type { StockStore } from '../../src/core/ports/stock-store.js';
import type { TransferStore } from '../../src/core/ports/transfer-store.js';
import type { MysqlPool, Transaction } from '../../src/mysql/pool.js';
import type { Seam } from '../../src/process/seams.js';

/**
 * Places between two steps where a test may stop a program. `FAILPOINT=<name>[:n]` kills the process at the n-th pass.
 * `FAILPOINT=<name>[:n]=throw` throws an error there. A point named `drop_…` does not stop the process: it skips the
 * call, or loses the reply. `poison_deduct` does not stop the process either, and acts at every pass: if the key of a
 * purchase begins with `poison`, the script gets a body for its batch that it cannot decode.
 */
const POINTS = [
  'after_precheck',
  'after_half',
  'after_deduct',
  'after_commit',
  'before_resubmit',
  'drop_half_reply',
  'drop_commit',
  'poison_deduct',
  'check_before_resolve',
  'check_after_resolve',
  'after_transfer_out',
  'after_transfer_in',
  'worker_after_receive',
  'worker_after_insert',
  'worker_before_commit',
  'worker_after_commit',
  'worker_after_mark_recorded',
  'outbox_after_publish',
  'release_before_done',
  'expire_after_commit',
  'compensate_after_row',
  'repair_after_lock',
  'repair_after_epoch',
  'repair_after_stock',
] as const;
type Point = (typeof POINTS)[number];

/** A body that Redis can never decode: half a surrogate pair. */
const POISON = String.raw`,"poison":"\ud800"}`;

/**
 * Returns a wrapper for each port of a program.
 * @param text the value of `FAILPOINT`
 * @throws Error for an unknown point
 */
export function failPoints(text: string) {
  const at = new FailPoint(text);
  const pointsOfHalf = (half: HalfMessage): HalfMessage => ({
    async commit() {
      if (at.loses('drop_commit')) return;
      await half.commit();
      await at.pass('after_commit');
    },
    async rollback() {
      const confirmed = await half.rollback();
      if (confirmed) await at.pass('before_resubmit');
      return confirmed;
    },
  });
  const pointsOfTransaction = (tx: Transaction): Transaction =>
    at.around(tx, 'execute', async (execute, sql, values) => {
      const written = await execute(sql, values);
      if (sql.startsWith('INSERT INTO orders')) await at.pass('worker_after_insert');
      return written;
    });
  const beforeDone = (outbox: Outbox, point: Point): Outbox =>
    at.around(outbox, 'markDone', async (markDone, outboxIds) => {
      if (outboxIds.length > 0) await at.pass(point);
      await markDone(outboxIds);
    });
  return {
    'stock store': (store: StockStore) => {
      const poisoned = at.around(store, 'deduct', (deduct, batch) => {
        const isPoisoned =
          at.isArmed('poison_deduct') && batch.purchases.some(({ requestId }) => requestId.startsWith('poison'));
        return deduct(isPoisoned ? { ...batch, body: batch.body.slice(0, -1) + POISON } : batch);
      });
      return at.after(at.after(poisoned, 'precheck', 'after_precheck'), 'deduct', 'after_deduct');
    },
    'stock store of check-backs': (store: StockStore) =>
      at.after(at.before(store, 'resolve', 'check_before_resolve'), 'resolve', 'check_after_resolve'),
    'purchase channel': (channel: PurchaseChannel) =>
      at.around(channel, 'sendHalf', async (send, batch) => {
        const half = await send(batch);
        await at.pass('after_half');
        if (typeof half === 'string') return half;
        return at.loses('drop_half_reply') ? 'outcome_unknown' : pointsOfHalf(half);
      }),
    /** A transfer that finds no units does not count as a step. */
    'transfer store': (store: TransferStore) =>
      at.after(
        at.after(store, 'transferOut', 'after_transfer_out', ({ outcome }) => outcome === 'transferred'),
        'transferIn',
        'after_transfer_in',
        ({ outcome }) => outcome === 'received',
      ),
    'mysql of the worker': (pool: MysqlPool) =>
      at.around(pool, 'transaction', (transaction, work) =>
        transaction(async (tx) => {
          const worked = await work(pointsOfTransaction(tx));
          await at.pass('worker_before_commit');
          return worked;
        }),
      ),
    /** The worker writes orders, and reconcile writes rows of abandoned purchases. An existing row does not count. */
    'order repository': (repository: OrderRepository) =>
      at.around(repository, 'write', async (write, ...plan) => {
        const written = await write(...plan);
        if (written.outcome === 'written') {
          await at.pass('worker_after_commit');
          await at.pass('compensate_after_row');
        }
        return written;
      }),
    'batch store': (store: BatchStore) => at.after(store, 'markRecorded', 'worker_after_mark_recorded'),
    'delivery source': (source: DeliverySource) =>
      at.after(source, 'receive', 'worker_after_receive', (deliveries) => deliveries.length > 0),
    'outbox to publish': (outbox: Outbox) => beforeDone(outbox, 'outbox_after_publish'),
    'outbox to release': (outbox: Outbox) => beforeDone(outbox, 'release_before_done'),
    'order transitions': (transitions: OrderTransitions) => {
      const hasEnded = (orders: number): boolean => orders > 0;
      const withSweep = at.after(transitions, 'expireDue', 'expire_after_commit', hasEnded);
      return at.after(withSweep, 'expire', 'expire_after_commit', hasEnded);
    },
    'repair store': (store: RepairStore) =>
      at.before(at.after(store, 'lock', 'repair_after_lock'), 'swap', 'repair_after_stock'),
    'repair repository': (repository: RepairRepository) => at.after(repository, 'raiseEpoch', 'repair_after_epoch'),
  } satisfies Record<Seam, (port: never) => object>;
}

type Method = (...args: never[]) => Promise<unknown>;
type MethodOf<T, K extends keyof T> = Extract<T[K], Method>;
type AnswerOf<T, K extends keyof T> = Awaited<ReturnType<MethodOf<T, K>>>;

/** The armed point of a program. */
class FailPoint {
  readonly #armed: Point;
  readonly #throws: boolean;
  #passesLeft: number;

  constructor(text: string) {
    const [, name, count = '1', act] = /^(\w+)(?::([1-9]\d*))?(=throw)?$/.exec(text) ?? [];
    const armed = POINTS.find((point) => point === name);
    if (armed === undefined)
      throw new Error(`FAILPOINT must be <name>[:n][=throw] with a name of ${POINTS.join(', ')}`);
    this.#armed = armed;
    this.#throws = act !== undefined;
    this.#passesLeft = Number(count);
  }

  /** Returns whether a point that acts at every pass is armed. */
  isArmed(point: Point): boolean {
    return point === this.#armed;
  }

  /** Stops the program here if the point is due. The caller awaits it. */
  async pass(point: Point): Promise<void> {
    if (!this.#isDue(point, this.#throws ? 'throw' : 'kill')) return;
    if (this.#throws) throw new Error(`fail point ${point}`);
    process.kill(process.pid, 'SIGKILL');
    await new Promise<never>(() => undefined);
  }

  /** Returns whether this call, or its reply, gets lost. */
  loses(point: Point): boolean {
    return this.#isDue(point, 'drop');
  }

  /** Passes `point` before each call of a method. */
  before<T extends object, K extends keyof T>(part: T, name: K, point: Point): T {
    const instead = async (call: Method, ...args: never[]): Promise<unknown> => {
      await this.pass(point);
      return call(...args);
    };
    return this.around(part, name, instead as never);
  }

  /** Passes `point` after each call of a method whose answer says that it did something. */
  after<T extends object, K extends keyof T>(
    part: T,
    name: K,
    point: Point,
    isStep: (answer: AnswerOf<T, K>) => boolean = () => true,
  ): T {
    const instead = async (call: Method, ...args: never[]): Promise<unknown> => {
      const answer = await call(...args);
      if (isStep(answer as AnswerOf<T, K>)) await this.pass(point);
      return answer;
    };
    return this.around(part, name, instead as never);
  }

  /** Replaces a method of a part with `instead`, which receives the original method. */
  around<T extends object, K extends keyof T>(
    part: T,
    name: K,
    instead: (call: MethodOf<T, K>, ...args: Parameters<MethodOf<T, K>>) => ReturnType<MethodOf<T, K>>,
  ): T {
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

  /** Counts a pass of the armed point. Writes a line before the point acts, because the process may end there. */
  #isDue(point: Point, act: string): boolean {
    if (point !== this.#armed || --this.#passesLeft !== 0) return false;
    if (process.env.LOG_LEVEL !== 'silent') writeSync(1, `${JSON.stringify({ failPoint: point, act })}\n`);
    return true;
  }
}

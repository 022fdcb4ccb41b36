import { setMaxListeners } from 'node:events';
import type { Batch } from '../../../src/core/batch.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { PurchaseOutcome, PurchaseStatus } from '../../../src/core/outcome.js';
import { cancelOrder, type CancelAnswer, payOrder, type PayAnswer } from '../../../src/orders/buyer-orders.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type {
  CheckBack,
  CheckBackAnswer,
  HalfMessage,
  OpenHalf,
  PurchaseChannel,
} from '../../../src/core/ports/channels.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { Batcher } from '../../../src/purchase/batcher.js';
import { createCheckBack } from '../../../src/purchase/check-back.js';
import { ClosedRows } from '../../../src/purchase/closed-rows.js';
import { PurchaseGate } from '../../../src/purchase/gate.js';
import { GetPurchase } from '../../../src/purchase/get-purchase.js';
import type { FoundBy } from '../../../src/purchase/metrics.js';
import { placeBatch, type Deliver, type PlaceBatchPorts } from '../../../src/purchase/place-batch.js';
import { SoldOutFlags } from '../../../src/purchase/sold-out-flags.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { SimulatedProcess } from '../engine/simulated-process.js';
import { pagesWithFaults, withFaults } from '../engine/with-faults.js';
import { metadataOf, SALE_ID } from '../shape.js';
import { onBug, type SimulatedSystem } from '../simulated-system.js';
import { RefusedBatches } from './refused-batches.js';
import { signedMessagesOf } from './signed-messages.js';
import { partial } from '../../helpers/partial.js';

/** A client gives up after this time without an answer. */
const HTTP_TIMEOUT_MS = 20_000;
const RESTART_MAX_MS = 6_000;
const CLOCK_SKEW_MAX_MS = 60_000;
/** Enough for a dozen buyers. The 20,000 of a real api would cost a quarter of the time. */
const CLOSED_ROWS_MAX = 100;
/** Enough for one sale. The number of a real api would cost a seventh of the time. */
const SNAPSHOTS_MAX = 4;

/** The requests that one api process serves. */
interface Endpoints {
  readonly purchase: (userId: string, requestId: string, quantity: number) => Promise<PurchaseOutcome>;
  readonly status: (userId: string, requestId: string, waitMs: number) => Promise<PurchaseStatus>;
  readonly pay: (orderId: string, userId: string) => Promise<PayAnswer>;
  readonly cancel: (orderId: string, userId: string) => Promise<CancelAnswer>;
  readonly checkBack: CheckBack;
}

/** An api process. When it dies, it is restarted with an empty memory. */
export class Api {
  readonly #system: SimulatedSystem;
  readonly #name: string;
  readonly #skewMs: number;
  #running: { readonly proc: SimulatedProcess; readonly endpoints: Endpoints } | null = null;

  constructor(system: SimulatedSystem, name: string) {
    this.#system = system;
    this.#name = name;
    this.#skewMs = system.rng.chance(0.2) ? system.rng.range(-CLOCK_SKEW_MAX_MS, CLOCK_SKEW_MAX_MS) : 0;
    this.start();
  }

  get alive(): boolean {
    return this.#running !== null;
  }

  start(): void {
    const { scheduler, rng } = this.#system;
    const proc = new SimulatedProcess(this.#system, this.#name, this.#skewMs);
    this.#running = { proc, endpoints: openEndpoints(proc, this.#system) };
    proc.onDeath(() => {
      this.#running = null;
      this.#system.count('process: api died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
  }

  /** Sends a request over HTTP. Null if no answer comes in time. */
  ask<T>(request: (endpoints: Endpoints) => Promise<T>): Promise<T | 'unavailable' | null> {
    const running = this.#running;
    if (running === null) return Promise.resolve(null);
    return new Promise((resolve) => {
      const timer = this.#system.scheduler.after(HTTP_TIMEOUT_MS, () => resolve(null));
      running.proc.onDeath(() => resolve(null));
      const answer = (value: T | 'unavailable'): void => {
        timer.cancelled = true;
        if (running.proc.alive) resolve(value);
      };
      request(running.endpoints).then(answer, (error: unknown) => {
        if (error instanceof OperationalError) answer('unavailable');
        else onBug(this.#system)(error);
      });
    });
  }

  /** Answers a check-back of the broker. A process that dies during it does not answer. */
  checkBack(half: OpenHalf): Promise<CheckBackAnswer> {
    return this.#running?.endpoints.checkBack(half) ?? Promise.resolve('no_answer');
  }
}

function openEndpoints(proc: SimulatedProcess, system: SimulatedSystem): Endpoints {
  const { shape, repositories, log } = system;
  const { clock } = proc;
  const refused = new RefusedBatches((what) => system.fail('AGAIN', what));
  const store = stockStoreOf(proc, system);
  const sales = withFaults(proc, 'mysql', repositories, ['find']);
  const orders = withFaults(proc, 'mysql', repositories, ['findOrder', 'findByPurchases', 'countCancelled']);
  const transitions = withFaults(proc, 'mysql', system.servers.transitions, ['pay', 'cancel']);
  const cache = withFaults(proc, 'redis', system.cache, ['read', 'lock', 'write', 'forget']);
  const snapshots = new SaleSnapshots(
    { repository: partial({ ...sales, newestId: () => repositories.newestId() }), cache, clock },
    { memoryTtlMs: 1_000, memoryMax: SNAPSHOTS_MAX, absentMax: SNAPSHOTS_MAX, lockMs: 3_000 },
  );
  const units = new UnitFetcher(
    withFaults(proc, 'redis', system.servers.transfers, ['read', 'transferOut', 'transferIn', 'endTransfer']),
  );
  const flags = lazyFlags(() => {
    return new SoldOutFlags({ lifeMs: shape.soldOutLifeMs, buyersMax: 1_000 }, { store, units, clock, log });
  });
  const placePorts: PlaceBatchPorts = {
    store: refused.watched(store),
    channel: channelOf(proc, system),
    units,
    flags: partial(flags),
    snapshots: partial({
      forget: (saleId) => {
        system.count('snapshot: old');
        return snapshots.forget(saleId);
      },
    }),
    clock,
    log,
  };
  const batcher = new Batcher(shape.batch, {
    place: (bucket, purchases, _spans, deliver) => {
      const watched: Deliver = (index, result) => {
        refused.delivered(purchases[index], result);
        deliver(index, result);
      };
      return placeBatch(bucket, purchases, '', watched, placePorts);
    },
    clock,
    metrics: partial({ batchPlaced: (verdict) => system.count(`batch: ${verdict}`), queueWaited: () => undefined }),
    onError: (error) => {
      if (error instanceof OperationalError) return 'unavailable';
      onBug(system)(error);
      return 'outcome_unknown';
    },
  });
  const closedRows = new ClosedRows(orders, clock, CLOSED_ROWS_MAX);
  const gate = new PurchaseGate({ snapshots, flags: partial(flags), batcher, clock, closedRows, store });
  const { notifications } = system;
  const metrics = { changeFound: (by: FoundBy) => system.count(`change found: ${by}`) };
  const { signal } = new AbortController(); // never aborted, because the simulation does not notice clients that leave
  setMaxListeners(0, signal);
  const random = (): number => system.rng.range(0, 999) / 1000;
  const statuses = new GetPurchase(
    { snapshots, store, repository: orders, closedRows, clock, random, notifications, metrics },
    1_000,
  );
  const provider = createPaymentSimulator();
  const attempts = withFaults(proc, 'mysql', system.attempts, ['open', 'close', 'openOf', 'postpone']);
  const refunds = withFaults(proc, 'mysql', system.refunds, ['refundsOf']);
  return {
    purchase: async (userId, requestId, quantity) => {
      if (gate.refuseEarly(SALE_ID, userId) !== null) return { outcome: 'sold_out' };
      const metadata = metadataOf({ userId, requestId }) ?? undefined;
      return gate.enter({ saleId: SALE_ID, userId, requestId, quantity, metadata });
    },
    status: (userId, requestId, waitMs) => statuses.get({ saleId: SALE_ID, userId, requestId, waitMs, signal }),
    pay: (orderId, userId) =>
      payOrder(
        { orderId, userId, key: null, method: null },
        { repository: orders, transitions, attempts, refunds, provider, clock, log },
      ),
    cancel: (orderId, userId) => cancelOrder(orderId, userId, { repository: orders, transitions }),
    checkBack: createCheckBack((ref) => store.resolve(ref), signedMessagesOf(proc, system), log),
  };
}

/** Creates the flags at the first zero, because their memory for a thousand sales costs as much as a run. */
function lazyFlags(make: () => SoldOutFlags): Pick<SoldOutFlags, 'refuses' | 'observe'> {
  let flags: SoldOutFlags | null = null;
  return {
    refuses: (ref, userId) => flags?.refuses(ref, userId) ?? false,
    observe: (ref, unitsLeft, seenMs) => {
      if (unitsLeft === 0) flags ??= make();
      flags?.observe(ref, unitsLeft, seenMs);
    },
  };
}

const unknown = () => ({ outcome: 'outcome_unknown' });

function stockStoreOf(proc: SimulatedProcess, system: SimulatedSystem): StockStore {
  const { stock } = system.servers;
  const reached = withFaults(
    proc,
    'redis',
    stock,
    ['precheck', 'deduct', 'resolve', 'findRequest', 'acceptedBuyerCount', 'readSale'],
    { deduct: unknown, resolve: () => 'outcome_unknown' },
  );
  return {
    ...reached,
    askForRepair: (saleId) => stock.askForRepair(saleId),
    acceptedBuyers: pagesWithFaults(proc, 'redis', 'acceptedBuyers', (ref) => stock.acceptedBuyers(ref)),
  };
}

function channelOf(proc: SimulatedProcess, system: SimulatedSystem): PurchaseChannel {
  const channel = system.broker.purchaseChannel(neverAsked);
  const ends = (half: HalfMessage, batch: Batch): HalfMessage => ({
    commit: () =>
      proc.call(
        'rocketmq',
        'commit',
        () => half.commit(),
        [batch],
        () => undefined,
      ),
    rollback: () =>
      proc.call(
        'rocketmq',
        'rollback',
        () => half.rollback(),
        [batch],
        () => false,
      ),
  });
  const unstored = (neverActs: boolean): string =>
    neverActs && system.rng.chance(0.5) ? 'unavailable' : 'outcome_unknown';
  return {
    sendHalf: async (batch) => {
      const half = await proc.call('rocketmq', 'sendHalf', () => channel.sendHalf(batch), [batch], unstored);
      return typeof half === 'string' ? half : ends(half, batch);
    },
  };
}

/** Never called, because the memory broker asks the first channel, and its `CheckBacks` picks a process. */
const neverAsked: CheckBack = async () => 'no_answer';

import { setMaxListeners } from 'node:events';
import type { Batch } from '../../../src/core/batch.js';
import { OperationalError } from '../../../src/core/errors.js';
import type { PurchaseOutcome, PurchaseStatus } from '../../../src/core/outcome.js';
import { cancelOrder, type CancelAnswer, payOrder, type PayAnswer } from '../../../src/orders/buyer-orders.js';
import { createPaymentSimulator } from '../../../src/payment/simulator.js';
import type { CheckBack, CheckBackAnswer, HalfMessage, PurchaseChannel } from '../../../src/core/ports/channels.js';
import type { StockStore } from '../../../src/core/ports/stock-store.js';
import { Batcher } from '../../../src/purchase/batcher.js';
import { createCheckBack } from '../../../src/purchase/check-back.js';
import { PurchaseGate } from '../../../src/purchase/gate.js';
import { GetPurchase } from '../../../src/purchase/get-purchase.js';
import type { FoundBy } from '../../../src/purchase/metrics.js';
import { placeBatch, type PlaceBatchPorts } from '../../../src/purchase/place-batch.js';
import { SoldOutFlags } from '../../../src/purchase/sold-out-flags.js';
import { SaleSnapshots } from '../../../src/sales/sale-snapshots.js';
import { UnitFetcher } from '../../../src/sales/stock/gather-units.js';
import { Life } from '../engine/simulated-process.js';
import { streamed, through } from '../engine/with-faults.js';
import { SALE_ID } from '../shape.js';
import { onBug, type Site } from '../simulated-system.js';

/** A client that hears nothing for so long gives up. */
const HTTP_TIMEOUT_MS = 20_000;
const RESTART_MAX_MS = 6_000;
const CLOCK_SKEW_MAX_MS = 60_000;

/** What one process can be asked for. */
interface Doors {
  readonly purchase: (userId: string, requestId: string, quantity: number) => Promise<PurchaseOutcome>;
  readonly status: (userId: string, requestId: string, waitMs: number) => Promise<PurchaseStatus>;
  readonly pay: (orderId: string, userId: string) => Promise<PayAnswer>;
  readonly cancel: (orderId: string, userId: string) => Promise<CancelAnswer>;
  readonly checkBack: CheckBack;
}

/** An api process: dies, is started again with an empty memory. */
export class Api {
  readonly #site: Site;
  readonly #name: string;
  readonly #skewMs: number;
  #running: { readonly life: Life; readonly doors: Doors } | null = null;

  constructor(site: Site, name: string) {
    this.#site = site;
    this.#name = name;
    this.#skewMs = site.rng.chance(0.2) ? site.rng.range(-CLOCK_SKEW_MAX_MS, CLOCK_SKEW_MAX_MS) : 0;
    this.start();
  }

  get alive(): boolean {
    return this.#running !== null;
  }

  start(): void {
    const { scheduler, rng } = this.#site;
    const life = new Life(this.#site, this.#name, this.#skewMs);
    this.#running = { life, doors: openDoors(life, this.#site) };
    life.onDeath(() => {
      this.#running = null;
      this.#site.count('process: api died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
  }

  /** One request over HTTP. Null: the connection was refused or broke, or nothing came in time. */
  ask<T>(request: (doors: Doors) => Promise<T>): Promise<T | 'unavailable' | null> {
    const running = this.#running;
    if (running === null) return Promise.resolve(null);
    return new Promise((resolve) => {
      const timer = this.#site.scheduler.after(HTTP_TIMEOUT_MS, () => resolve(null));
      running.life.onDeath(() => resolve(null));
      const answer = (value: T | 'unavailable'): void => {
        timer.cancelled = true;
        if (running.life.alive) resolve(value);
      };
      request(running.doors).then(answer, (error: unknown) => {
        if (error instanceof OperationalError) answer('unavailable');
        else onBug(this.#site)(error);
      });
    });
  }

  /** The broker asks; a process that dies meanwhile says nothing. */
  checkBack(body: string): Promise<CheckBackAnswer> {
    return this.#running?.doors.checkBack(body) ?? Promise.resolve('no_answer');
  }
}

function openDoors(life: Life, site: Site): Doors {
  const { shape, books, log } = site;
  const { clock } = life;
  const store = stockStoreOf(life, site);
  const sales = through(life, 'mysql', books, ['find']);
  const orders = through(life, 'mysql', books, ['findOrder', 'findByPurchases']);
  const moves = through(life, 'mysql', site.servers.moves, ['pay', 'cancel']);
  const cache = through(life, 'redis', site.cache, ['read', 'lock', 'write', 'forget']);
  const snapshots = new SaleSnapshots(
    { repository: sales, cache, clock },
    { memoryTtlMs: 1_000, memoryMax: 4, lockMs: 3_000 },
  );
  const units = new UnitFetcher(
    through(life, 'redis', site.servers.transfers, ['read', 'transferOut', 'transferIn', 'endTransfer']),
  );
  const flags = lazyFlags(() => {
    return new SoldOutFlags({ lifeMs: shape.soldOutLifeMs, keysMax: 1_000 }, { store, units, clock, log });
  });
  const placePorts: PlaceBatchPorts = {
    store,
    channel: channelOf(life, site),
    units,
    flags,
    snapshots: {
      forget: (saleId) => {
        site.count('snapshot: old');
        return snapshots.forget(saleId);
      },
    },
    clock,
    steadyClock: clock,
  };
  const batcher = new Batcher(shape.batch, {
    place: (bucket, purchases, trace, deliver) => placeBatch(bucket, purchases, trace, deliver, placePorts),
    clock,
    metrics: { batchPlaced: (verdict) => site.count(`batch: ${verdict}`), queueWaited: () => undefined },
    onError: (error) => {
      if (error instanceof OperationalError) return 'unavailable';
      onBug(site)(error);
      return 'outcome_unknown';
    },
  });
  const gate = new PurchaseGate({ snapshots, flags, batcher });
  const { notifications } = site;
  const metrics = { changeFound: (by: FoundBy) => site.count(`change found: ${by}`) };
  const { signal } = new AbortController(); // nobody hangs up: a client that has gone is not noticed here
  setMaxListeners(0, signal);
  const random = (): number => site.rng.range(0, 999) / 1000;
  const statuses = new GetPurchase(
    { snapshots, store, repository: orders, clock, random, notifications, metrics },
    1_000,
  );
  const provider = createPaymentSimulator();
  return {
    purchase: async (userId, requestId, quantity) => {
      if (gate.refuseEarly(SALE_ID, userId, requestId) !== null) return { outcome: 'sold_out' };
      return gate.enter({ saleId: SALE_ID, userId, requestId, quantity, trace: '' });
    },
    status: (userId, requestId, waitMs) => statuses.get({ saleId: SALE_ID, userId, requestId, waitMs, signal }),
    pay: (orderId, userId) => payOrder({ orderId, userId, key: null }, { repository: orders, moves, provider, log }),
    cancel: (orderId, userId) => cancelOrder(orderId, userId, { repository: orders, moves }),
    checkBack: createCheckBack(store, log),
  };
}

/** The flags are built for a thousand sales, which costs as much as a run; before the first zero there is none. */
function lazyFlags(make: () => SoldOutFlags): Pick<SoldOutFlags, 'refuses' | 'observe'> {
  let flags: SoldOutFlags | null = null;
  return {
    refuses: (ref, key) => flags?.refuses(ref, key) ?? false,
    observe: (ref, unitsLeft, seenMs) => {
      if (unitsLeft === 0) flags ??= make();
      flags?.observe(ref, unitsLeft, seenMs);
    },
  };
}

const unknown = () => ({ outcome: 'outcome_unknown' });

function stockStoreOf(life: Life, site: Site): StockStore {
  const { stock } = site.servers;
  const reached = through(
    life,
    'redis',
    stock,
    ['precheck', 'deduct', 'resolve', 'findRequest', 'acceptedCount', 'readSale'],
    { deduct: unknown, resolve: () => 'outcome_unknown' },
  );
  return {
    ...reached,
    acceptedKeys: streamed(life, 'redis', 'acceptedKeys', (ref) => stock.acceptedKeys(ref)),
  };
}

function channelOf(life: Life, site: Site): PurchaseChannel {
  const channel = site.broker.purchaseChannel(neverAsked);
  const ends = (half: HalfMessage, batch: Batch): HalfMessage => ({
    commit: () =>
      life.call(
        'rocketmq',
        'commit',
        () => half.commit(),
        [batch],
        () => undefined,
      ),
    rollback: () =>
      life.call(
        'rocketmq',
        'rollback',
        () => half.rollback(),
        [batch],
        () => false,
      ),
  });
  const unstored = (surely: boolean): string => (surely && site.rng.chance(0.5) ? 'unavailable' : 'outcome_unknown');
  return {
    sendHalf: async (batch) => {
      const half = await life.call('rocketmq', 'sendHalf', () => channel.sendHalf(batch), [batch], unstored);
      return typeof half === 'string' ? half : ends(half, batch);
    },
  };
}

/** The broker in memory asks the first channel; the world has registered its own before, which picks a process. */
const neverAsked: CheckBack = async () => 'no_answer';

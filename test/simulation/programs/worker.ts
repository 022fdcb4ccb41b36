import { Registry } from 'prom-client';
import { OperationalError } from '../../../src/core/errors.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { createWorkerMetrics, type WorkerMetrics } from '../../../src/orders/metrics.js';
import { MysqlOutage } from '../../../src/orders/mysql-outage.js';
import { WorkerLoop } from '../../../src/orders/worker-loop.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import { Life } from '../engine/simulated-process.js';
import { replaced, through } from '../engine/with-faults.js';
import { onBug, type Site } from '../simulated-system.js';
import { sourceOf } from './source.js';

const WAYS_IN = [
  { topic: TOPICS.purchase, group: GROUPS.writer },
  { topic: TOPICS.redrive, group: GROUPS.redriveWriter },
] as const;
const RESTART_MAX_MS = 6_000;
const PROBE_EVERY_MS = 1_000;
/** How many of the workers are stopped in good order, now and then. */
const STOPPED = 0.1;
/** The shortest that the broker takes. */
const HOLD_MS = 10_000;

/** A worker process: dies, is started again. */
export class Worker {
  readonly #site: Site;
  readonly #name: string;
  #starts = 0;

  constructor(site: Site, name: string) {
    this.#site = site;
    this.#name = name;
    this.start();
  }

  start(): void {
    const { scheduler, rng } = this.#site;
    const life = new Life(this.#site, this.#name);
    const owner = `${this.#name}-${++this.#starts}`;
    life.onDeath(() => {
      this.#site.count('process: worker died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    run(life, this.#site, owner).catch(onBug(this.#site));
  }
}

async function run(life: Life, site: Site, owner: string): Promise<void> {
  const { shape, log } = site;
  const { clock } = life;
  const slots = through(life, 'mysql', site.slots, ['acquire', 'free']);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs });
  await renewed(life, minter);
  void keepLease(life, minter, shape.slotLeaseMs / 3).catch(onBug(site));

  const metrics: WorkerMetrics = {
    ...createWorkerMetrics(new Registry()),
    delivered: (verdict) => site.count(`delivery: ${verdict}`),
    retried: (reason) => site.count(`retry: ${reason}`),
    mysqlOutage: (isOut) => site.count(`outage: ${isOut ? 'begun' : 'over'}`),
  };
  const outage = new MysqlOutage(
    { probe: () => minter.renew(), clock, metrics, log },
    { probeEveryMs: PROBE_EVERY_MS },
  );
  life.onDeath(() => outage.shutdown());
  const shared = {
    repository: orderRepositoryOf(life, site),
    deadLetters: through(life, 'mysql', site.deadLetters, ['park']),
    store: through(life, 'redis', site.servers.settlement, ['markRecorded', 'reacquire', 'park']),
    minter,
    outage,
    clock,
    metrics,
    log,
    onBug: onBug(site),
  };
  const { invisibleMs, paymentWindowMs, renewMs, retryFirstMs } = shape;
  const renew = renewMs === null ? {} : { renewMs };
  const loops = WAYS_IN.map((way) => {
    const source = sourceOf(life, site, { ...way, invisibleMs });
    const options = { ...way, loops: 1, receiveMax: 4, retryFirstMs, paymentWindowMs, holdMs: HOLD_MS, ...renew };
    return new WorkerLoop({ ...shared, source }, options);
  });
  for (const loop of loops) loop.start();
  if (!site.rng.chance(STOPPED)) return;
  await clock.sleep(site.rng.range(1, shape.chaosMs)); // SIGTERM, as at every release
  await Promise.all(loops.map((loop) => loop.stop()));
  await minter.close();
  if (life.alive) site.count('process: worker stopped');
  life.die();
}

/** A program that cannot start is started again by whoever runs it. */
async function renewed(life: Life, minter: OrderIdMinter): Promise<void> {
  for (;;) {
    try {
      return await minter.renew();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      await life.clock.sleep(1_000);
    }
  }
}

async function keepLease(life: Life, minter: OrderIdMinter, everyMs: number): Promise<never> {
  for (;;) {
    await life.clock.sleep(everyMs);
    await minter.renew().catch((error: unknown) => {
      if (!(error instanceof OperationalError)) throw error;
    });
  }
}

function orderRepositoryOf(life: Life, site: Site): OrderRepository {
  const { orders } = site.servers;
  const repository: OrderRepository = replaced(orders, {
    write: async (plan) => (site.faults.befalls('deadlocked') ? { outcome: 'again' } : orders.write(plan)),
  });
  return through(life, 'mysql', repository, ['termsOf', 'write', 'findByPurchases', 'liveBuyers', 'findOrder']);
}

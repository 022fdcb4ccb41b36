import { Registry } from 'prom-client';
import { OperationalError } from '../../../src/core/errors.js';
import { GROUPS, TOPICS } from '../../../src/core/topics.js';
import { createOrderIdMinter, type OrderIdMinter } from '../../../src/orders/order-id-minter.js';
import { createWorkerMetrics, type WorkerMetrics } from '../../../src/orders/metrics.js';
import { MysqlOutage } from '../../../src/orders/mysql-outage.js';
import { WorkerLoop } from '../../../src/orders/worker-loop.js';
import type { OrderRepository } from '../../../src/core/ports/order-repository.js';
import { SimulatedProcess } from '../engine/simulated-process.js';
import { withFaults } from '../engine/with-faults.js';
import { onBug, type SimulatedSystem } from '../simulated-system.js';
import { signedMessagesOf } from './signed-messages.js';
import { sourceOf } from './source.js';

const SOURCES = [
  { topic: TOPICS.purchase, group: GROUPS.writer },
  { topic: TOPICS.redrive, group: GROUPS.redriveWriter },
] as const;
const RESTART_MAX_MS = 6_000;
const PROBE_EVERY_MS = 1_000;
/** Share of the workers that are stopped gracefully. */
const STOPPED_RATE = 0.1;
/** The shortest invisible time that the broker allows. */
const HOLD_MS = 10_000;

/** A worker process. When it dies, it is restarted. */
export class Worker {
  readonly #system: SimulatedSystem;
  readonly #name: string;
  #starts = 0;

  constructor(system: SimulatedSystem, name: string) {
    this.#system = system;
    this.#name = name;
    this.start();
  }

  start(): void {
    const { scheduler, rng } = this.#system;
    const proc = new SimulatedProcess(this.#system, this.#name);
    const owner = `${this.#name}-${++this.#starts}`;
    proc.onDeath(() => {
      this.#system.count('process: worker died');
      scheduler.after(rng.range(1, RESTART_MAX_MS), () => this.start());
    });
    run(proc, this.#system, owner).catch(onBug(this.#system));
  }
}

async function run(proc: SimulatedProcess, system: SimulatedSystem, owner: string): Promise<void> {
  const { shape, log } = system;
  const { clock } = proc;
  const slots = withFaults(proc, 'mysql', system.slots, ['acquire', 'free']);
  const minter = createOrderIdMinter({ slots, clock, log }, { owner, leaseMs: shape.slotLeaseMs });
  await renewed(proc, minter);
  void keepLease(proc, minter, shape.slotLeaseMs / 3).catch(onBug(system));

  const metrics: WorkerMetrics = {
    ...createWorkerMetrics(new Registry()),
    delivered: (verdict) => system.count(`delivery: ${verdict}`),
    retried: (reason) => system.count(`retry: ${reason}`),
    mysqlOutage: (isOut) => system.count(`outage: ${isOut ? 'begun' : 'over'}`),
  };
  const outage = new MysqlOutage(
    { probe: () => minter.renew(), clock, metrics, log },
    { probeEveryMs: PROBE_EVERY_MS },
  );
  proc.onDeath(() => outage.shutdown());
  const shared = {
    repository: orderRepositoryOf(proc, system),
    deadLetters: withFaults(proc, 'mysql', system.deadLetters, ['park']),
    store: withFaults(proc, 'redis', system.servers.batches, ['markRecorded', 'reacquire', 'park', 'leaveAlone']),
    minter,
    outage,
    clock,
    metrics,
    log,
    onBug: onBug(system),
  };
  const { invisibleMs, paymentWindowMs, renewMs, retryFirstMs } = shape;
  const renew = renewMs === null ? {} : { renewMs };
  const messages = signedMessagesOf(proc, system);
  const loops = SOURCES.map((way) => {
    const source = messages.of(sourceOf(proc, system, { ...way, invisibleMs }), way);
    const options = { ...way, loops: 1, receiveMax: 4, retryFirstMs, paymentWindowMs, holdMs: HOLD_MS, ...renew };
    return new WorkerLoop({ ...shared, source }, options);
  });
  for (const loop of loops) loop.start();
  if (!system.rng.chance(STOPPED_RATE)) return;
  await clock.sleep(system.rng.range(1, shape.chaosMs)); // SIGTERM, as at every release
  await Promise.all(loops.map((loop) => loop.stop()));
  await minter.close();
  if (proc.alive) system.count('process: worker stopped');
  proc.die();
}

/** The supervisor restarts a program that cannot start. */
async function renewed(proc: SimulatedProcess, minter: OrderIdMinter): Promise<void> {
  for (;;) {
    try {
      return await minter.renew();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      await proc.clock.sleep(1_000);
    }
  }
}

async function keepLease(proc: SimulatedProcess, minter: OrderIdMinter, everyMs: number): Promise<never> {
  for (;;) {
    await proc.clock.sleep(everyMs);
    await minter.renew().catch((error: unknown) => {
      if (!(error instanceof OperationalError)) throw error;
    });
  }
}

function orderRepositoryOf(proc: SimulatedProcess, system: SimulatedSystem): OrderRepository {
  const { orders } = system.servers;
  const write: OrderRepository['write'] = async (plan) =>
    system.faults.happens('deadlocked') ? { outcome: 'again' } : orders.write(plan);
  return {
    ...withFaults(proc, 'mysql', orders, [
      'termsOf',
      'findByPurchases',
      'writtenBatches',
      'liveBuyers',
      'findOrder',
      'countCancelled',
      'expiredOf',
    ]),
    ...withFaults(proc, 'mysql', { write }, ['write']),
  };
}

import { OperationalError } from '../core/errors.js';
import type { DeliverySource } from '../core/ports/channels.js';
import { OutageLog } from '../core/outage-log.js';
import { doublingDelayMs, jittered, redeliveryDelayMs } from '../core/back-off.js';
import {
  type BatchDelivery,
  handleDeliveries,
  type HandleOptions,
  type HandlePorts,
  type Postponed,
  readBatches,
} from './handle-deliveries.js';
import type { MysqlOutage } from './mysql-outage.js';
import { noIdsPauseMs } from './write-attempts.js';

export interface WorkerLoopPorts extends HandlePorts {
  readonly source: DeliverySource;
  readonly outage: MysqlOutage;
  /** Called with a bug in our code. The current deliveries are not acked. */
  readonly onBug: (error: unknown) => void;
}

export interface WorkerLoopOptions extends HandleOptions {
  /** Number of loops that receive and write at the same time. The pool needs a connection for each loop. */
  readonly loops: number;
  /** Number of deliveries in one receive, and therefore in one transaction, from 1 to 32. */
  readonly receiveMax: number;
  /** How long one `hold` keeps a delivery ours during an outage of MySQL, ms. Renewed at half. Default 60000. */
  readonly holdMs?: number;
  /** Interval of holds for deliveries being written, ms, well below their invisible time. If absent, no holds. */
  readonly renewMs?: number;
  /** Maximum number of deliveries set aside. Default 512. */
  readonly asideMax?: number;
  /** How long a delivery is held before it is given back, which counts as an attempt, ms. Default 15 minutes. */
  readonly holdMaxMs?: number;
  /** How long `stop` waits for work in hand, ms. Default 15000: a receive (8 s) and a transaction. */
  readonly stopMaxMs?: number;
}

const HOLD_MS = 60_000;
/** The default takes a few MB, because a body has a few kB. */
const ASIDE_MAX = 512;
const HOLD_MAX_MS = 15 * 60_000;
const STOP_MAX_MS = 15_000;
/** Pause after a receive that failed, or that returned nothing without waiting. */
const RECEIVE_PAUSE_MS = 1_000;
const RECEIVE_AT_ONCE_MS = 50;
type Defaulted = Pick<WorkerLoopOptions, 'holdMs' | 'holdMaxMs' | 'stopMaxMs' | 'asideMax'>;
const DEFAULTS: Required<Defaulted> = {
  holdMs: HOLD_MS,
  holdMaxMs: HOLD_MAX_MS,
  stopMaxMs: STOP_MAX_MS,
  asideMax: ASIDE_MAX,
};
/** Pauses before further tries of deliveries that MySQL refused although its probe worked. */
const AGAIN_MIN_MS = 250;
const AGAIN_MAX_MS = 15_000;
/** An outage of the broker ends after this time without a failed receive: during it, some loops may succeed. */
const CALM_MS = 10_000;

/** From the third try on, each batch goes alone, in case MySQL cannot handle one of them. */
const ALONE_FROM_TRY = 3;

/**
 * Receives batches and handles them to the end, in several loops. A loop is in one of three states:
 *
 * - *waiting*: MySQL is down or no order id may be minted, and the loop has no deliveries. It receives nothing, so
 *   other workers get the new messages.
 * - *receiving*: the loop asks the broker for deliveries.
 * - *recording*: the loop tries its deliveries until each is acked or given back, and receives nothing until then.
 *   Deliveries postponed because of MySQL or order ids stay with the loop.
 *
 * Deliveries of a sale that is being rebuilt are set *aside*: they are held and tried again independently of the loops,
 * which continue with other sales. Beyond `asideMax`, the loop keeps further deliveries and waits with them, as in an
 * outage.
 *
 * The broker counts every redelivery and gives up a message after five. A poison message should end like that, but no
 * message in an outage. Postponed deliveries are therefore held: a hold is not counted. At most `loops` × `receiveMax`
 * + `asideMax` messages live in this process. If it dies, they are redelivered after `holdMs` with one more attempt. A
 * delivery held longer than `holdMaxMs` is given back after all, because it may be what brings MySQL down. If Redis is
 * full or restarting, nothing is postponed: the batch is recorded now and marked later (`handleDeliveries`).
 */
export class WorkerLoop {
  readonly #ports: WorkerLoopPorts;
  readonly #options: WorkerLoopOptions & Required<Defaulted>;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #asideCount = 0;
  readonly #aside = new Set<Promise<void>>();
  readonly #receiveOutage: OutageLog;
  /** Ends with the current try of set-aside deliveries. Tries take turns: they share one connection of the pool. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ports: WorkerLoopPorts, options: WorkerLoopOptions) {
    this.#ports = { ...ports, inBackground: (work) => this.#runInBackground(work) };
    this.#options = { ...DEFAULTS, ...options };
    const messages = { begins: 'receive failed', ends: 'messages are received again' };
    this.#receiveOutage = new OutageLog(ports.log, messages, {}, CALM_MS);
  }

  start(): void {
    this.#running = Promise.all(Array.from({ length: this.#options.loops }, () => this.#loop()));
  }

  /** Stops receiving, finishes work in hand, gives held deliveries back. Resolves after `stopMaxMs` at the latest. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const waiting = new AbortController();
    const ended = this.#running.then(() => Promise.all(this.#aside));
    await Promise.race([ended, this.#ports.clock.sleep(this.#options.stopMaxMs, waiting.signal)]);
    waiting.abort();
  }

  /** Receives once and handles the deliveries. Resolves to their number. */
  async runOnce(): Promise<number> {
    const { source, metrics } = this.#ports;
    const deliveries = await source.receive(this.#options.receiveMax);
    if (deliveries.length === 0) return 0;
    metrics.received(deliveries.length);
    const batches = await readBatches(deliveries, this.#ports, this.#options);
    if (batches.length > 0) await this.#recordUntilDone(batches);
    return deliveries.length;
  }

  async #loop(): Promise<void> {
    const { outage, minter, clock, onBug } = this.#ports;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (!(await outage.untilOver(this.#options.holdMs, signal))) continue;
      const ids = minter.mint([]); // like any call, takes another slot if the clock is far behind
      if (ids.outcome === 'refused') {
        await clock.sleep(noIdsPauseMs(ids.waitMs), signal);
        continue;
      }
      const startedMs = clock.monotonicMs();
      try {
        const received = await this.runOnce();
        this.#receiveOutage.end();
        if (received > 0 || clock.monotonicMs() - startedMs > RECEIVE_AT_ONCE_MS) continue;
      } catch (error) {
        if (!(error instanceof OperationalError)) return onBug(error);
        this.#receiveOutage.failed(error);
      }
      await clock.sleep(jittered(RECEIVE_PAUSE_MS), signal);
    }
  }

  async #recordUntilDone(received: readonly BatchDelivery[]): Promise<void> {
    const sinceMs = this.#ports.clock.monotonicMs();
    let deliveries = received;
    for (let tries = 1; deliveries.length > 0; tries++) {
      const postponed = await this.#whileHeld(deliveries, () => this.#record(deliveries, tries));
      deliveries = [...postponed.deliveries, ...this.#setAside(postponed.inRepair, sinceMs, tries)];
      if (deliveries.length === 0) return;
      if (postponed.error !== null) this.#ports.outage.begin(postponed.error);
      if (!(await this.#holdUntilUsable(deliveries, sinceMs, tries))) return this.#giveBack(deliveries);
    }
  }

  /** @returns deliveries without room */
  #setAside(inRepair: readonly BatchDelivery[], sinceMs: number, tries: number): readonly BatchDelivery[] {
    const room = this.#options.asideMax - this.#asideCount;
    const taken = inRepair.slice(0, Math.max(0, room));
    if (taken.length === 0) return inRepair;
    this.#countAside(taken.length);
    this.#runInBackground(this.#endAside(taken, sinceMs, tries));
    return inRepair.slice(taken.length);
  }

  /** Runs work for which `stop` waits, but the loops do not. */
  #runInBackground(work: Promise<void>): void {
    const ended = work.catch((error: unknown) => this.#ports.onBug(error)).finally(() => this.#aside.delete(ended));
    this.#aside.add(ended);
  }

  async #endAside(set: readonly BatchDelivery[], sinceMs: number, triesBefore: number): Promise<void> {
    let deliveries = set;
    for (let tries = triesBefore; deliveries.length > 0; tries++) {
      this.#runInBackground(this.#keepFromRedrive(deliveries));
      const isUsable = await this.#holdUntilUsable(deliveries, sinceMs, tries);
      const left = isUsable ? await this.#tryInTurn(deliveries, tries + 1) : [];
      this.#countAside(left.length - deliveries.length);
      if (!isUsable) return this.#giveBack(deliveries);
      deliveries = left;
    }
  }

  /**
   * Asks the re-drive to leave the batches alone, for as long as a hold lasts. Otherwise it would publish batches that
   * are aside for long again, and their copies would be set aside too. A failed renewal may lead to such copies.
   */
  async #keepFromRedrive(deliveries: readonly BatchDelivery[]): Promise<void> {
    const forMs = this.#options.holdMs;
    const notes = deliveries.map(({ batch }) =>
      this.#ports.store.leaveAlone(batch, [{ batchId: batch.batchId, forMs }]),
    );
    for (const note of await Promise.allSettled(notes)) {
      if (note.status === 'rejected' && !(note.reason instanceof OperationalError)) throw note.reason;
    }
  }

  #countAside(change: number): void {
    this.#asideCount += change;
    this.#ports.metrics.setAside(this.#options.group, this.#asideCount);
  }

  async #tryInTurn(deliveries: readonly BatchDelivery[], tries: number): Promise<readonly BatchDelivery[]> {
    const before = this.#turn;
    let end = (): void => undefined;
    this.#turn = new Promise<void>((resolve) => (end = resolve));
    try {
      const postponed = await this.#whileHeld(deliveries, async () => {
        await before;
        return this.#record(deliveries, tries);
      });
      if (postponed.error !== null) this.#ports.outage.begin(postponed.error);
      return [...postponed.deliveries, ...postponed.inRepair];
    } finally {
      end();
    }
  }

  /** Holds deliveries during work: a transaction may outlast a delivery, which must not cost good batches attempts. */
  async #whileHeld<T>(deliveries: readonly BatchDelivery[], work: () => Promise<T>): Promise<T> {
    const working = new AbortController();
    void this.#renew(deliveries, working.signal);
    try {
      return await work();
    } finally {
      working.abort(null); // without a reason, this would create an error with a stack trace
    }
  }

  async #renew(deliveries: readonly BatchDelivery[], signal: AbortSignal): Promise<void> {
    const { renewMs, holdMs } = this.#options;
    if (renewMs === undefined) return;
    for (;;) {
      await this.#ports.clock.sleep(renewMs, signal);
      if (signal.aborted) return;
      await Promise.all(deliveries.map(({ delivery }) => delivery.hold(holdMs))); // false for a delivery that is done
    }
  }

  async #record(deliveries: readonly BatchDelivery[], tries: number): Promise<Postponed> {
    if (tries < ALONE_FROM_TRY) return handleDeliveries(deliveries, this.#ports, this.#options);
    const left: BatchDelivery[] = [];
    const inRepair: BatchDelivery[] = [];
    let error: OperationalError | null = null;
    for (const one of deliveries) {
      const postponed = await handleDeliveries([one], this.#ports, this.#options);
      left.push(...postponed.deliveries);
      inRepair.push(...postponed.inRepair);
      error ??= postponed.error;
    }
    return { deliveries: left, inRepair, error };
  }

  /** Holds deliveries until MySQL is back, and for a growing pause after that. False if they must be given back. */
  async #holdUntilUsable(deliveries: readonly BatchDelivery[], sinceMs: number, tries: number): Promise<boolean> {
    const { outage, clock } = this.#ports;
    const { holdMs, holdMaxMs } = this.#options;
    const { signal } = this.#stopping;
    const isTooLong = (): boolean => signal.aborted || clock.monotonicMs() - sinceMs >= holdMaxMs;
    do {
      if (isTooLong()) return false;
      await Promise.all(deliveries.map(({ delivery }) => delivery.hold(holdMs)));
    } while (!(await outage.untilOver(holdMs / 2, signal)));
    await clock.sleep(jittered(doublingDelayMs(tries, AGAIN_MIN_MS, Math.min(AGAIN_MAX_MS, holdMs / 4))), signal);
    return !isTooLong();
  }

  async #giveBack(deliveries: readonly BatchDelivery[]): Promise<void> {
    const { log, metrics } = this.#ports;
    log.warn({ deliveries: deliveries.length }, 'deliveries were not recorded in time; the broker delivers them again');
    for (const { batch } of deliveries) metrics.delivered('retry', batch.purchases.length);
    await Promise.all(deliveries.map(({ delivery }) => delivery.retryAfter(redeliveryDelayMs(delivery.attempt))));
  }
}

import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { WorkerMetrics } from './metrics.js';

export interface MysqlOutagePorts {
  /** Should make a small write: a server that is read-only or has a full disk still answers SELECT 1. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
}

/**
 * Knows whether MySQL is down, for all loops of a worker. A failed write or probe starts an outage; a false alarm costs
 * one pause. During an outage only the probe calls MySQL, every `probeEveryMs`. The first success ends the outage.
 */
export class MysqlOutage {
  readonly #ports: MysqlOutagePorts;
  readonly #probeEveryMs: number;
  readonly #shutdown = new AbortController();
  /** Aborted when the outage ends. Null if there is no outage. */
  #outage: AbortController | null = null;

  constructor(ports: MysqlOutagePorts, { probeEveryMs }: { readonly probeEveryMs: number }) {
    this.#ports = ports;
    this.#probeEveryMs = probeEveryMs;
    ports.metrics.mysqlOutage(false);
  }

  get isOver(): boolean {
    return this.#outage === null;
  }

  /** Probes every `everyMs`, so that a worker without messages notices an outage. A probe also renews its lease. */
  async watch(everyMs: number): Promise<void> {
    const { probe, clock } = this.#ports;
    for (;;) {
      await clock.sleep(everyMs, this.#shutdown.signal);
      if (this.#shutdown.signal.aborted) return;
      if (!this.isOver) continue;
      await probe().catch((error: unknown) => this.begin(error));
    }
  }

  /** Starts an outage. Call it when MySQL has just failed. */
  begin(error: unknown): void {
    if (this.#outage !== null || this.#shutdown.signal.aborted) return;
    this.#outage = new AbortController();
    this.#ports.metrics.mysqlOutage(true);
    this.#ports.log.warn({ error: String(error) }, 'MySQL fails; receiving nothing until it works again');
    void this.#probeUntilOver(this.#outage);
  }

  /** Waits until MySQL is usable. False if `ms` pass or `signal` aborts first. */
  async untilOver(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#outage === null) return true;
    if (!signal.aborted) await this.#ports.clock.sleep(ms, AbortSignal.any([signal, this.#outage.signal]));
    return this.isOver;
  }

  shutdown(): void {
    this.#shutdown.abort();
  }

  async #probeUntilOver(outage: AbortController): Promise<void> {
    const { probe, clock, metrics, log } = this.#ports;
    for (;;) {
      await clock.sleep(this.#probeEveryMs, this.#shutdown.signal);
      if (this.#shutdown.signal.aborted) return;
      try {
        await probe();
        break;
      } catch (error) {
        log.debug({ error: String(error) }, 'MySQL still fails');
      }
    }
    this.#outage = null;
    metrics.mysqlOutage(false);
    log.info({}, 'MySQL works again; receiving messages');
    outage.abort();
  }
}

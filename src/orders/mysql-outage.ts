import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { WorkerMetrics } from './metrics.js';

export interface MysqlOutagePorts {
  /**
   * Resolves if MySQL works. It should make a small write, because a server that has a full disk or is read-only still
   * answers SELECT 1.
   */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  readonly metrics: WorkerMetrics;
  readonly log: Log;
}

/**
 * Whether MySQL is down, for all loops of a worker. A single failed write or probe starts an outage. A false alarm
 * costs only the pause of one probe. During an outage only the probe calls MySQL, every `probeEveryMs`, and the first
 * successful probe ends the outage.
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

  /**
   * Probes every `everyMs` until the shutdown, so that a worker without messages notices an outage too. The probe may
   * serve another purpose as well: the worker's probe renews its lease.
   */
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

  /** Resolves to true when MySQL is usable, or to false if `ms` pass or `signal` aborts first. */
  async untilOver(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#outage === null) return true;
    if (!signal.aborted) await this.#ports.clock.sleep(ms, AbortSignal.any([signal, this.#outage.signal]));
    return this.isOver;
  }

  /** Ends the probes. */
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

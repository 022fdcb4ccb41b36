import CircuitBreaker from 'opossum';
import type { OperationalError } from '../core/errors.js';
import type { Clock } from '../core/ports/clock.js';
import type { Log } from '../core/ports/log.js';
import type { WorkerMetrics } from '../core/ports/worker-metrics.js';

export interface OutageBreakerPorts {
  /** Resolves when MySQL works. Best a small write: a full disk or a read-only server still answers SELECT 1. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  readonly metrics: Pick<WorkerMetrics, 'breaker'>;
  readonly log: Log;
}

/**
 * Keeps the loops of a worker from receiving while MySQL is out. One failure opens it: the outage costs a pause of one
 * probe if it was none. While it is open only the probe calls MySQL, every `probeEveryMs`; the first one that works
 * closes it. So an outage of minutes ends by itself and no message pays for it with its attempts.
 */
export class OutageBreaker {
  readonly #circuit: CircuitBreaker<[], void>;
  readonly #clock: Clock;
  readonly #log: Log;

  constructor({ probe, clock, metrics, log }: OutageBreakerPorts, { probeEveryMs }: { readonly probeEveryMs: number }) {
    this.#clock = clock;
    this.#log = log;
    // The driver has its own time-outs; a second one here would only hide what went wrong.
    this.#circuit = new CircuitBreaker(probe, { timeout: false, resetTimeout: probeEveryMs, volumeThreshold: 0 });
    this.#circuit.on('open', () => metrics.breaker('open'));
    this.#circuit.on('close', () => {
      metrics.breaker('closed');
      log.info({ dependency: 'mysql' }, 'back again, receiving');
    });
    this.#circuit.on('halfOpen', () => {
      metrics.breaker('half_open');
      this.#circuit.fire().catch((error: unknown) => {
        log.debug({ dependency: 'mysql', error: String(error) }, 'probe failed');
      });
    });
  }

  get closed(): boolean {
    return this.#circuit.closed;
  }

  /** MySQL failed just now. */
  trip(error: OperationalError): void {
    if (!this.#circuit.closed) return;
    this.#log.warn({ dependency: 'mysql', error: error.message }, 'out of order, nothing is received until it is back');
    this.#circuit.open();
  }

  /** True as soon as MySQL is usable; false when `ms` have passed or `signal` aborted before. */
  async whenClosed(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#circuit.closed) return true;
    const waiting = new AbortController();
    const stop = (): void => waiting.abort();
    signal.addEventListener('abort', stop);
    this.#circuit.on('close', stop);
    try {
      if (!signal.aborted) await this.#clock.sleep(ms, waiting.signal);
    } finally {
      signal.removeEventListener('abort', stop);
      this.#circuit.removeListener('close', stop);
    }
    return this.#circuit.closed;
  }

  /** Ends its timers. */
  shutdown(): void {
    this.#circuit.shutdown();
  }
}

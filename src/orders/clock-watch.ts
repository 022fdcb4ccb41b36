import { CLOCK_SKEW_MAX_MS } from '../core/clock-skew.js';
import { OperationalError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import type { Clock, ServerClocks } from '../core/ports/clock.js';
import { recent } from '../core/recent.js';
import type { OrderJobMetrics } from './metrics.js';

/** How long messages that arrive together share an answer. */
const KEPT_MS = 250;

export interface ClockWatchPorts {
  readonly servers: ServerClocks;
  readonly clock: Clock;
  readonly metrics: OrderJobMetrics;
}

/**
 * Compares the clocks of MySQL and Redis with ours. Deadlines follow MySQL's clock: if it ran ahead, it would end every
 * unpaid order at once. No order expires while a clock differs by more than 2 s (docs/decisions/0059).
 */
export class ClockWatch {
  readonly #ports: ClockWatchPorts;
  readonly #compare: () => Promise<string | null>;
  #problem: string | null = null;

  constructor(ports: ClockWatchPorts) {
    this.#ports = ports;
    this.#compare = recent(() => this.#read(), KEPT_MS, ports.clock);
  }

  /** @throws OperationalError mysql if MySQL does not answer or a clock differs; the message says what to do */
  async agree(): Promise<void> {
    const problem = await this.#compare();
    if (problem !== null) throw new OperationalError('mysql', problem, { retryable: true });
  }

  /** The problem that the last comparison found. Null if the clocks agreed. */
  get problem(): string | null {
    return this.#problem;
  }

  async #read(): Promise<string | null> {
    const { servers, clock, metrics } = this.#ports;
    const askedMs = clock.nowMs();
    /** Returns at least how far a clock is ahead of ours, ms. A slow answer proves less than a fast one. */
    const aheadMs = async (read: Promise<number>): Promise<number> => {
      const serverMs = await read;
      const answeredMs = clock.nowMs();
      return serverMs > answeredMs ? serverMs - answeredMs : Math.min(0, serverMs - askedMs);
    };
    const [mysqlMs, ...redis] = await Promise.all([
      aheadMs(servers.mysql()),
      // A Redis server that does not answer proves nothing, and /readyz names it.
      ...servers.redis().map((read) => aheadMs(read).catch(() => 0)),
    ]);
    const redisMs = redis.reduce((most, one) => (Math.abs(one) > Math.abs(most) ? one : most), 0);
    metrics.clockAhead('mysql', mysqlMs);
    metrics.clockAhead('redis', redisMs);
    return (this.#problem = problemOf('MySQL', mysqlMs) ?? problemOf('Redis', redisMs));
  }
}

function problemOf(server: string, aheadMs: number): string | null {
  if (Math.abs(aheadMs) <= CLOCK_SKEW_MAX_MS) return null;
  const side = aheadMs > 0 ? 'ahead of' : 'behind';
  return `the clock of ${server} is ${Math.abs(aheadMs)} ms ${side} the clock of this machine; set the clocks of all machines (NTP)`;
}

/** Fails each run of the job while the clocks differ, without running the job. */
export const whileClocksAgree = (clocks: ClockWatch, job: Job): Job => ({
  name: job.name,
  async runOnce() {
    await clocks.agree();
    return job.runOnce();
  },
});

import { OperationalError, type Dependency } from '../../core/errors.js';
import { OutageLog } from '../../core/outage-log.js';
import type { BreakerReport, BreakerState, BreakerStore, LiveReport } from '../../core/ports/admission-stores.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import type { Mode } from '../layer.js';
import type { AdmissionMetrics } from '../metrics.js';
import { AdaptiveBreaker, UNWATCHED } from './adaptive-breaker.js';
import { DEPENDENCIES, type BreakerRules } from './breaker-rules.js';

/** Minimum quorum: a single process opens only its own breaker. */
const QUORUM_MIN = 2;
/** In floating point, 0.07 × 100 is slightly more than 7. */
const ROUNDING = 1e-9;

/** Returns how many of the live processes must have a breaker open before all treat it as open. */
export function quorumOf(live: number, quorumShare: number): number {
  return Math.max(Math.min(QUORUM_MIN, live), Math.ceil(quorumShare * live - ROUNDING));
}

/** Half-open breakers count as live but not as open, because they may wait long for a request to try. */
function isOpenForAll(reports: readonly LiveReport[], dependency: Dependency, quorumShare: number): boolean {
  const open = reports.filter(({ report }) => report[dependency] === 'open').length;
  return open > 0 && open >= quorumOf(reports.length, quorumShare);
}

/** Whether a process closed its breaker since the previous reports. */
export function hasRecovered(
  before: readonly LiveReport[],
  now: readonly LiveReport[],
  dependency: Dependency,
): boolean {
  const wasNotClosed = new Set(
    before.filter(({ report }) => report[dependency] !== 'closed').map(({ processId }) => processId),
  );
  return now.some(({ processId, report }) => report[dependency] === 'closed' && wasNotClosed.has(processId));
}

/** A breaker as this process knows it. */
export interface BreakerStanding {
  readonly dependency: Dependency;
  readonly state: BreakerState;
  /** Unix ms. Null if older than this process. */
  readonly sinceMs: number | null;
  /** Null for the state that all processes follow. */
  readonly processId: string | null;
}

interface SharedBreakersParts {
  readonly rules: () => BreakerRules;
  readonly store: BreakerStore;
  readonly clock: Clock;
  /** Returns a number from 0 to 1. */
  readonly random: () => number;
  readonly metrics: AdmissionMetrics;
  readonly log: Log;
}

interface SharedBreakersOptions {
  /** Unique, never reused. */
  readonly processId: string;
  /** Pause between exchanges of reports, ms. Two exchanges plus a trial must take less than a second. */
  readonly pollMs: number;
  /** After this time, a silent process no longer counts, nor does the last reading of the store. */
  readonly reportLifeMs: number;
}

/** Number of exchanges left out at a time while breakers are off. The rules that switch them on take a moment too. */
const OFF_POLLS = 4;

/** Processes exchange their reports four times per second. A process that misses eight exchanges no longer counts. */
export const REPORT_TIMES = { pollMs: 250, reportLifeMs: 2000 } as const;

/** The breakers of all dependencies in this process, and the quorum of all processes. */
export class SharedBreakers {
  readonly #parts: SharedBreakersParts;
  readonly #options: SharedBreakersOptions;
  readonly #breakers: Readonly<Record<Dependency, AdaptiveBreaker>>;
  readonly #storeOutage: OutageLog;
  #reports: readonly LiveReport[] = [];
  #standings: ReadonlyMap<string, BreakerStanding> = new Map();
  #wasOn: boolean;

  constructor(parts: SharedBreakersParts, options: SharedBreakersOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#wasOn = this.isOn;
    this.#storeOutage = new OutageLog(parts.log, {
      begins: 'could not exchange breaker reports; this process judges by its own calls',
      ends: 'breaker reports are exchanged again',
    });
    const breakerOf = (dependency: Dependency): AdaptiveBreaker =>
      new AdaptiveBreaker({
        rules: parts.rules,
        clock: parts.clock,
        random: parts.random,
        moved: (state) => {
          parts.metrics.breakerMoved(dependency, state);
          parts.log.warn({ dependency, state }, 'a breaker changed its state');
        },
        refused: (mode) => parts.metrics.breakerRefused(dependency, mode),
      });
    this.#breakers = { redis: breakerOf('redis'), rocketmq: breakerOf('rocketmq'), mysql: breakerOf('mysql') };
  }

  /** False if breakers are off: they watch no calls and refuse no requests. */
  get isOn(): boolean {
    return this.#parts.rules().mode !== 'off';
  }

  get mode(): Mode {
    return this.#parts.rules().mode;
  }

  /** Lists the shared state of each dependency, then the breakers of all processes that are not closed. */
  get standings(): readonly BreakerStanding[] {
    const shared = DEPENDENCIES.map(
      (dependency): BreakerStanding =>
        this.#standings.get(nameOf(dependency, null)) ?? {
          dependency,
          state: 'closed',
          sinceMs: null,
          processId: null,
        },
    );
    const { processId } = this.#options;
    const now = this.#report(); // the store may be down
    const own = DEPENDENCIES.map((dependency) => this.#standing(dependency, processId, now[dependency]));
    const others = [...this.#standings.values()].filter((one) => one.processId !== null && one.processId !== processId);
    return [...shared, ...[...own, ...others].filter(({ state }) => state !== 'closed')];
  }

  /** Call it once per request that needs the dependency, before any of its work. */
  refuses(dependency: Dependency): boolean {
    return this.#breakers[dependency].refuses();
  }

  /**
   * Records the result of a call, but never refuses it.
   * @param failed whether a result is a failure; a thrown error is, if it blames this dependency
   */
  async watch<T>(dependency: Dependency, call: () => Promise<T>, failed?: (result: T) => boolean): Promise<T> {
    const breaker = this.#breakers[dependency];
    const era = breaker.begin();
    if (era === UNWATCHED) return call();
    const { clock } = this.#parts;
    const startedMs = clock.monotonicMs();
    try {
      const result = await call();
      breaker.end(era, failed?.(result) ?? false, clock.monotonicMs() - startedMs);
      return result;
    } catch (error) {
      const isToBlame = error instanceof OperationalError && error.dependency === dependency;
      breaker.end(era, isToBlame, clock.monotonicMs() - startedMs);
      throw error;
    }
  }

  /**
   * Exchanges reports once. Await the first exchange before the first request, so a new process starts with the quorum.
   * Rejects only for a bug: without the store, each process follows its own calls.
   */
  async runOnce(): Promise<void> {
    const { store, clock } = this.#parts;
    const { processId, reportLifeMs } = this.#options;
    if (this.isOn !== this.#wasOn) this.#startAnew();
    if (!this.isOn) return;
    const askedMs = clock.monotonicMs();
    try {
      const reports = await store.exchange(processId, this.#report(), reportLifeMs);
      this.#follow(reports, askedMs + reportLifeMs);
      this.#storeOutage.end();
    } catch (error) {
      if (!(error instanceof OperationalError)) throw error;
      this.#storeOutage.failed(error);
    }
  }

  /** Exchanges reports until the signal aborts, then withdraws the report of this process. */
  async poll(signal: AbortSignal): Promise<void> {
    const { clock, store, log } = this.#parts;
    while (!signal.aborted) {
      await this.runOnce();
      await clock.sleep(this.#options.pollMs * (this.isOn ? 1 : OFF_POLLS), signal);
    }
    await store.withdraw(this.#options.processId).catch((err: unknown) => {
      log.debug({ err }, 'could not withdraw the breaker report of this process; it expires by itself');
    });
  }

  #startAnew(): void {
    this.#wasOn = this.isOn;
    this.#reports = [];
    this.#standings = new Map();
    for (const dependency of DEPENDENCIES) {
      this.#breakers[dependency].forget();
      this.#parts.metrics.breakerQuorum(dependency, false);
    }
  }

  #report(): BreakerReport {
    const { redis, rocketmq, mysql } = this.#breakers;
    return { redis: redis.state(), rocketmq: rocketmq.state(), mysql: mysql.state() };
  }

  #follow(reports: readonly LiveReport[], untilMs: number): void {
    const { quorumShare } = this.#parts.rules();
    const standings = new Map<string, BreakerStanding>();
    const note = (dependency: Dependency, processId: string | null, state: BreakerState): void =>
      void standings.set(nameOf(dependency, processId), this.#standing(dependency, processId, state));
    for (const dependency of DEPENDENCIES) {
      const breaker = this.#breakers[dependency];
      const isOpen = isOpenForAll(reports, dependency, quorumShare);
      note(dependency, null, isOpen ? 'open' : 'closed');
      for (const { processId, report } of reports) note(dependency, processId, report[dependency]);
      breaker.followQuorum(isOpen, untilMs);
      this.#parts.metrics.breakerQuorum(dependency, isOpen);
      if (hasRecovered(this.#reports, reports, dependency)) breaker.tryNow();
    }
    this.#reports = reports;
    this.#standings = standings;
  }

  /** Builds a standing. Its start is still unknown. */
  #standing(dependency: Dependency, processId: string | null, state: BreakerState): BreakerStanding {
    const before = this.#standings.get(nameOf(dependency, processId));
    const moved = before !== undefined && before.state !== state;
    const sinceMs = moved ? this.#parts.clock.nowMs() : (before?.sinceMs ?? null);
    return { dependency, state, sinceMs, processId };
  }
}

const nameOf = (dependency: Dependency, processId: string | null): string => `${dependency} ${processId ?? ''}`;

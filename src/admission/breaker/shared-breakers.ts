import { type Dependency, OperationalError } from '../../core/errors.js';
import type { LiveVote, BreakerStore, Vote } from '../../core/ports/admission-stores.js';
import type { BreakerMetrics } from '../../core/ports/breaker-metrics.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import { DEPENDENCIES, type BreakerRules } from './breaker-rules.js';
import { AdaptiveBreaker, UNWATCHED } from './adaptive-breaker.js';

/** One process that is in trouble alone opens it for nobody else. */
const VOTES_MIN = 2;
/** 0.07 × 100 is a little above 7 in floating point. */
const ROUNDING = 1e-9;

/** So many of the live processes open it for all. */
export function votesNeeded(live: number, quorumShare: number): number {
  return Math.max(Math.min(VOTES_MIN, live), Math.ceil(quorumShare * live - ROUNDING));
}

/** A process in a trial counts as live, not as one in trouble: it may wait long for a request to try with. */
export function isOpenForAll(votes: readonly LiveVote[], dependency: Dependency, quorumShare: number): boolean {
  const open = votes.filter(({ vote }) => vote[dependency] === 'open').length;
  return open > 0 && open >= votesNeeded(votes.length, quorumShare);
}

/** Whether a process that was in trouble at the last look has found the dependency well since. */
export function hasRecovered(before: readonly LiveVote[], now: readonly LiveVote[], dependency: Dependency): boolean {
  const wasInTrouble = new Set(before.filter(({ vote }) => vote[dependency] !== 'closed').map((one) => one.processId));
  return now.some(({ processId, vote }) => vote[dependency] === 'closed' && wasInTrouble.has(processId));
}

export interface SharedBreakersPorts {
  readonly rules: () => BreakerRules;
  readonly board: BreakerStore;
  /** One that goes on evenly. */
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: BreakerMetrics;
  readonly log: Log;
}

export interface SharedBreakersOptions {
  /** Names this process on the board; never used twice. */
  readonly processId: string;
  /** Between two looks at the board. Two looks and a trial stay below the second within which processes agree. */
  readonly pollMs: number;
  /** A process that says nothing for so long does not count any more, nor does what the board said. */
  readonly voteLifeMs: number;
}

/** Four looks a second; a process that misses eight of them is gone. */
export const BOARD_TIMES = { pollMs: 250, voteLifeMs: 2000 } as const;

/** The breakers of all dependencies in this process, and what the other processes say. */
export class SharedBreakers {
  readonly #ports: SharedBreakersPorts;
  readonly #options: SharedBreakersOptions;
  readonly #breakers: Readonly<Record<Dependency, AdaptiveBreaker>>;
  #seen: readonly LiveVote[] = [];
  #boardIsAway = false;
  #wasOn: boolean;

  constructor(ports: SharedBreakersPorts, options: SharedBreakersOptions) {
    this.#ports = ports;
    this.#options = options;
    this.#wasOn = this.isOn;
    const breakerOf = (dependency: Dependency): AdaptiveBreaker =>
      new AdaptiveBreaker({
        ...{ rules: ports.rules, clock: ports.clock, random: ports.random },
        moved: (state) => {
          ports.metrics.breakerMoved(dependency, state);
          ports.log.warn({ dependency, state }, 'a breaker has moved');
        },
        refused: (dryRun) => ports.metrics.breakerRefused(dependency, dryRun),
      });
    this.#breakers = { redis: breakerOf('redis'), rocketmq: breakerOf('rocketmq'), mysql: breakerOf('mysql') };
  }

  /** False: nothing is watched and nobody is refused. */
  get isOn(): boolean {
    return this.#ports.rules().mode !== 'off';
  }

  /** Asked once for each request that needs the dependency, before anything of it has begun. */
  refuses(dependency: Dependency): boolean {
    return this.#breakers[dependency].refuses();
  }

  /**
   * Runs one call to a dependency and remembers how it went. It is never refused here.
   * @param failed tells a result that stands for a failure; what is thrown is one if the dependency is to blame
   */
  async watch<T>(dependency: Dependency, call: () => Promise<T>, failed?: (result: T) => boolean): Promise<T> {
    const breaker = this.#breakers[dependency];
    const era = breaker.begin();
    if (era === UNWATCHED) return call();
    const { clock } = this.#ports;
    const startedMs = clock.nowMs();
    try {
      const result = await call();
      breaker.end(era, failed?.(result) ?? false, clock.nowMs() - startedMs);
      return result;
    } catch (error) {
      const isToBlame = error instanceof OperationalError && error.dependency === dependency;
      breaker.end(era, isToBlame, clock.nowMs() - startedMs);
      throw error;
    }
  }

  /**
   * One look at the board. Best awaited once before the first request, so that a new process begins as the others
   * stand. Never throws: without the board each process goes by its own experience.
   */
  async runOnce(): Promise<void> {
    const { board, clock } = this.#ports;
    const { processId, voteLifeMs } = this.#options;
    if (this.isOn !== this.#wasOn) this.#beginAnew();
    if (!this.isOn) return;
    const askedMs = clock.nowMs();
    try {
      const votes = await board.exchange(processId, this.#vote(), voteLifeMs);
      this.#follow(votes, askedMs + voteLifeMs);
      if (this.#boardIsAway) this.#ports.log.info({}, 'the board of the breakers is back');
      this.#boardIsAway = false;
    } catch (err) {
      if (!(err instanceof OperationalError)) throw err;
      if (!this.#boardIsAway) this.#ports.log.warn({ err }, 'no board: breakers go by what this process sees');
      this.#boardIsAway = true;
    }
  }

  /** Looks at the board again and again until the signal aborts, then takes its vote back. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, board, log } = this.#ports;
    while (!signal.aborted) {
      await this.runOnce();
      await clock.sleep(this.#options.pollMs, signal);
    }
    await board.withdraw(this.#options.processId).catch((err: unknown) => {
      log.debug({ err }, 'the vote of this process ends by itself');
    });
  }

  #beginAnew(): void {
    this.#wasOn = this.isOn;
    this.#seen = [];
    for (const dependency of DEPENDENCIES) {
      this.#breakers[dependency].forget();
      this.#ports.metrics.breakerQuorum(dependency, false);
    }
  }

  #vote(): Vote {
    const { redis, rocketmq, mysql } = this.#breakers;
    return { redis: redis.state(), rocketmq: rocketmq.state(), mysql: mysql.state() };
  }

  #follow(votes: readonly LiveVote[], untilMs: number): void {
    const { quorumShare } = this.#ports.rules();
    for (const dependency of DEPENDENCIES) {
      const breaker = this.#breakers[dependency];
      const isOpen = isOpenForAll(votes, dependency, quorumShare);
      breaker.followBoard(isOpen, untilMs);
      this.#ports.metrics.breakerQuorum(dependency, isOpen);
      if (hasRecovered(this.#seen, votes, dependency)) breaker.tryNow();
    }
    this.#seen = votes;
  }
}

import { Counter, Gauge, type Registry } from 'prom-client';
import type { Dependency } from '../core/errors.js';
import type { LimitName } from '../core/limits.js';
import type { BreakerState } from '../core/ports/admission-stores.js';
import type { Line, PerClass } from '../core/ports/line-store.js';
import type { Mode } from './layer.js';

/** The modes that count. A layer that is off counts nothing. */
type CountedMode = Exclude<Mode, 'off'>;

const BREAKER_LEVELS: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

export type AdmissionMetrics = ReturnType<typeof createAdmissionMetrics>;

/** Creates the metrics of admission for an api. Labels hold words of the rules only: no buyer, no sale, no address. */
export function createAdmissionMetrics(registry: Registry) {
  const registers = [registry];
  const refusals = new Counter({
    name: 'seckill_admission_refusals_total',
    help: 'Requests that a layer refused, or would have refused (dry_run).',
    labelNames: ['layer', 'word', 'mode'],
    registers,
  });
  const rulesVersion = new Gauge({
    name: 'seckill_admission_rules_version',
    help: 'Version of the rules that this process follows.',
    registers,
  });
  const newestVersion = new Gauge({
    name: 'seckill_admission_rules_newest_version',
    help: 'Newest version of the rules that this process has seen. If it is above the version in use, this process cannot use it.',
    registers,
  });
  const rulesRefused = new Counter({
    name: 'seckill_admission_rules_refused_total',
    help: 'Versions of the rules that this process could not use.',
    registers,
  });
  const canaryAnswers = new Counter({
    name: 'seckill_admission_canary_answers_total',
    help: 'Answers to purchases while a canary of rules runs: of users whom the canary judges (tried), and of the others.',
    labelNames: ['users', 'answer'],
    registers,
  });
  const counted = new Counter({
    name: 'seckill_admission_limit_requests_total',
    help: 'Requests counted for limits: by Redis for all processes, or by this process while Redis is down.',
    labelNames: ['by'],
    registers,
  });
  const limitRefusals = new Counter({
    name: 'seckill_admission_limit_refusals_total',
    help: 'Requests that a limit refused, or would have refused (dry_run), by the limit with the longest wait.',
    labelNames: ['endpoint', 'limit', 'mode'],
    registers,
  });
  const uncounted = new Counter({
    name: 'seckill_admission_limit_uncounted_total',
    help: 'Users and addresses that this process did not count, because it already counted too many.',
    registers,
  });
  const breaker = new Gauge({
    name: 'seckill_admission_breaker',
    help: 'State of the breaker around a dependency, by the calls of this process: 0 closed, 1 half open, 2 open.',
    labelNames: ['dependency'],
    registers,
  });
  const quorum = new Gauge({
    name: 'seckill_admission_breaker_quorum',
    help: '1 while all processes treat the breaker as open, because it is open in enough of them.',
    labelNames: ['dependency'],
    registers,
  });
  const breakerRefusals = new Counter({
    name: 'seckill_admission_breaker_refusals_total',
    help: 'Times that an open breaker asked for a smaller answer, or would have (dry_run).',
    labelNames: ['dependency', 'mode'],
    registers,
  });
  const degraded = new Counter({
    name: 'seckill_admission_degraded_total',
    help: 'Requests that got less than the full answer, or would have (dry_run).',
    labelNames: ['endpoint', 'level', 'mode'],
    registers,
  });
  for (const dependency of ['redis', 'rocketmq', 'mysql']) {
    breaker.labels(dependency).set(BREAKER_LEVELS.closed); // an alert on a rise needs the value before it
    quorum.labels(dependency).set(0);
  }
  const canaryAnswersTo = (users: string) => ({
    accepted: canaryAnswers.labels(users, 'accepted'),
    refused: canaryAnswers.labels(users, 'refused'),
  });
  const canaryCounted = { tried: canaryAnswersTo('tried'), others: canaryAnswersTo('others') };
  const countedBy = { redis: counted.labels('redis'), local: counted.labels('local') };
  return {
    /** @param word the reason, such as `denied` or `nonce_used` */
    refused: (layer: string, word: string, mode: CountedMode): void => refusals.labels(layer, word, mode).inc(),
    rulesTaken: (version: number): void => {
      rulesVersion.set(version);
      newestVersion.set(version);
    },
    rulesRefused: (version: number): void => {
      newestVersion.set(version);
      rulesRefused.inc();
    },
    canaryAnswered: (users: 'tried' | 'others', answer: 'accepted' | 'refused'): void =>
      canaryCounted[users][answer].inc(),
    /** @param by Redis for all processes, or this process alone */
    requestsCounted: (by: 'redis' | 'local', requests: number): void => countedBy[by].inc(requests),
    /** @param limit the limit with the longest wait */
    limitRefused: (endpoint: string, limit: LimitName | 'leaky' | 'address', mode: CountedMode): void =>
      limitRefusals.labels(endpoint, limit, mode).inc(),
    /** Counts users or addresses that passed a limit uncounted. */
    uncounted: (times: number): void => uncounted.inc(times),
    breakerMoved: (dependency: Dependency, to: BreakerState): void =>
      breaker.labels(dependency).set(BREAKER_LEVELS[to]),
    breakerRefused: (dependency: Dependency, mode: CountedMode): void => breakerRefusals.labels(dependency, mode).inc(),
    breakerQuorum: (dependency: Dependency, isOpen: boolean): void => quorum.labels(dependency).set(isOpen ? 1 : 0),
    degraded: (endpoint: string, level: string, mode: CountedMode): void =>
      degraded.labels(endpoint, level, mode).inc(),
  };
}

/** Metrics of the pace of the lines. */
export interface RoomMetrics {
  /** @param forMs time between the two looks, on the clock of this process */
  moved(from: Line, to: Line, perSecond: number, forMs: number): void;
}

/** Counts how many buyers the lines admit, and how many the rules order. */
export function createRoomMetrics(registry: Registry): RoomMetrics {
  const registers = [registry];
  const admitted = new Counter({
    name: 'seckill_admission_queue_admitted_total',
    help: 'Buyers whose turn in a waiting room came, in all processes, while buyers waited. Buyers whom an operator let in do not count.',
    registers,
  });
  const ordered = new Counter({
    name: 'seckill_admission_queue_ordered_total',
    help: 'Buyers whom the rules order to admit, by the clock of this process, while buyers waited.',
    registers,
  });
  const waiting = ({ joined, admitted }: Line): number => sum(joined) - sum(admitted);
  return {
    moved(from, to, perSecond, forMs): void {
      const isBusy = from.opened && from.epoch === to.epoch && waiting(from) > 0 && waiting(to) > 0;
      if (!isBusy) return; // an empty line admits whoever comes
      admitted.inc(Math.max(0, sum(to.admitted) - sum(from.admitted) - (to.granted - from.granted)));
      ordered.inc((perSecond * forMs) / 1000);
    },
  };
}

const sum = ([first, second, third]: PerClass): number => first + second + third;

/** @param waiting returns the number of waiting buyers, read when the metrics are collected */
export function createWaitingRoomMetrics(registry: Registry, waiting: () => number): void {
  new Gauge({
    name: 'seckill_admission_queue_waiting',
    help: 'Buyers in the waiting rooms that this process knows. Every process knows the whole line.',
    registers: [registry],
    collect() {
      this.set(waiting());
    },
  });
}

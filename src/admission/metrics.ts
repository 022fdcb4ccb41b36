import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import type { Dependency } from '../core/errors.js';
import type { LimitName } from '../core/limits.js';
import type { BreakerState } from '../core/ports/admission-stores.js';
import type { Line, PerClass } from '../core/ports/line-store.js';
import type { Mode } from './layer.js';

/** The modes in which a layer counts. A layer that is off counts nothing. */
type CountedMode = Exclude<Mode, 'off'>;

const BREAKER_LEVELS: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

export type AdmissionMetrics = ReturnType<typeof createAdmissionMetrics>;

/** Labels contain only words of the rules: no buyer, sale or address. */
export function createAdmissionMetrics(registry: Registry) {
  const { counter, gauge } = metricMakers(registry);
  const refusals = counter(
    'seckill_admission_refusals_total',
    'Requests that a layer refused, or would have refused (dry_run).',
    ['layer', 'word', 'mode'],
  );
  const rulesVersion = gauge('seckill_admission_rules_version', 'Version of the rules that this process follows.');
  const newestVersion = gauge(
    'seckill_admission_rules_newest_version',
    'Newest version of the rules that this process has seen. If it is above the version in use, this process cannot use it.',
  );
  const rulesRefused = counter(
    'seckill_admission_rules_refused_total',
    'Versions of the rules that this process could not use.',
  );
  const canaryAnswers = counter(
    'seckill_admission_canary_answers_total',
    'Answers to purchases during a canary of the rules: to the users of the canary (tried), and to all others.',
    ['users', 'answer'],
  );
  const counted = counter(
    'seckill_admission_limit_requests_total',
    'Requests counted for limits: by Redis for all processes, or by this process while Redis is down.',
    ['by'],
  );
  const limitRefusals = counter(
    'seckill_admission_limit_refusals_total',
    'Requests that a limit refused, or would have refused (dry_run), by the limit with the longest wait.',
    ['endpoint', 'limit', 'mode'],
  );
  const uncounted = counter(
    'seckill_admission_limit_uncounted_total',
    'Users and addresses that this process did not count, because it already counted too many.',
  );
  const breaker = gauge(
    'seckill_admission_breaker',
    'State of the circuit breaker of a dependency, judged by the calls of this process: 0 closed, 1 half open, 2 open.',
    ['dependency'],
  );
  const quorum = gauge(
    'seckill_admission_breaker_quorum',
    '1 while all processes treat the breaker as open, because it is open in enough of them.',
    ['dependency'],
  );
  const breakerRefusals = counter(
    'seckill_admission_breaker_refusals_total',
    'Times that an open breaker asked for a smaller answer, or would have (dry_run).',
    ['dependency', 'mode'],
  );
  const degraded = counter(
    'seckill_admission_degraded_total',
    'Requests that got less than the full answer, or would have (dry_run).',
    ['endpoint', 'level', 'mode'],
  );
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
    /** @param by `redis`: for all processes; `local`: for this process alone */
    requestsCounted: (by: 'redis' | 'local', requests: number): void => countedBy[by].inc(requests),
    /** @param limit with the longest wait */
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

/** Metrics about the rate at which the lines move. */
export interface RoomMetrics {
  /** @param forMs between the two reads */
  moved(from: Line, to: Line, perSecond: number, forMs: number): void;
}

/** Counts how many buyers the lines admit, and how many they should admit according to the rules. */
export function createRoomMetrics(registry: Registry): RoomMetrics {
  const { counter } = metricMakers(registry);
  const admitted = counter(
    'seckill_admission_queue_admitted_total',
    'Buyers admitted by the rate of a waiting room, in all processes, while others waited. Buyers admitted by an operator do not count.',
  );
  const ordered = counter(
    'seckill_admission_queue_ordered_total',
    'Buyers who were due to be admitted at the rate in the rules, by the clock of this process, while others waited.',
  );
  const waiting = ({ joined, admitted }: Line): number => sum(joined) - sum(admitted);
  return {
    moved(from, to, perSecond, forMs): void {
      const isBusy = from.opened && from.epoch === to.epoch && waiting(from) > 0 && waiting(to) > 0;
      if (!isBusy) return; // an empty line admits every buyer at once
      admitted.inc(Math.max(0, sum(to.admitted) - sum(from.admitted) - (to.granted - from.granted)));
      ordered.inc((perSecond * forMs) / 1000);
    },
  };
}

const sum = ([first, second, third]: PerClass): number => first + second + third;

/** @param waiting number of waiting buyers, read when the metrics are collected */
export function createWaitingRoomMetrics(registry: Registry, waiting: () => number): void {
  const { readGauge } = metricMakers(registry);
  readGauge(
    'seckill_admission_queue_waiting',
    'Buyers in the waiting rooms that this process knows. Every process knows the whole line.',
    waiting,
  );
}

import { Counter, Gauge, type Registry } from 'prom-client';
import type { BreakerState } from '../core/ports/admission-stores.js';
import type { BreakerMetrics } from '../core/ports/breaker-metrics.js';
import type { DegradeMetrics } from '../core/ports/degrade-metrics.js';
import type { AdmissionMetrics } from '../core/ports/admission-metrics.js';
import type { LimitMetrics } from '../core/ports/limit-metrics.js';

/** The api: what the layers of the entry refuse, and by which rules. */
export function createAdmissionMetrics(registry: Registry): AdmissionMetrics {
  const registers = [registry];
  const refusals = new Counter({
    name: 'seckill_admission_refusals_total',
    help: 'What a layer of the entry refused, or would have: in mode dry_run the request went on.',
    labelNames: ['layer', 'word', 'mode'],
    registers,
  });
  const version = new Gauge({
    name: 'seckill_admission_rules_version',
    help: 'The version of the rules that are in force in this process.',
    registers,
  });
  const unfit = new Counter({
    name: 'seckill_admission_rules_refused_total',
    help: 'Versions of the rules that were not fit to be taken. Alert on any.',
    registers,
  });
  return {
    refused: (layer, word, mode) => refusals.labels(layer, word, mode).inc(),
    rulesTaken: (taken) => version.set(taken),
    rulesRefused: () => unfit.inc(),
  };
}

/** The api: its waiting rooms. */
export function createQueueMetrics(registry: Registry, waiting: () => number): void {
  new Gauge({
    name: 'seckill_admission_queue_waiting',
    help: 'Buyers who wait in the rooms of this process.',
    registers: [registry],
    collect() {
      this.set(waiting());
    },
  });
}

/** The api: the limits of the entry. */
export function createLimitMetrics(registry: Registry): LimitMetrics {
  const registers = [registry];
  const counted = new Counter({
    name: 'seckill_admission_limit_requests_total',
    help: 'Visits that were counted, by Redis for all processes, or by this one while Redis is away.',
    labelNames: ['by'],
    registers,
  });
  const refused = new Counter({
    name: 'seckill_admission_limit_refusals_total',
    help: 'Visits that a limit refused, or would have refused (dry_run), by the limit that made them wait longest.',
    labelNames: ['endpoint', 'limit', 'mode'],
    registers,
  });
  const uncounted = new Counter({
    name: 'seckill_admission_limit_uncounted_total',
    help: 'Users and addresses that were not counted, because too many others were.',
    registers,
  });
  const by = { redis: counted.labels('redis'), local: counted.labels('local') };
  return {
    counted: (store, callers) => by[store].inc(callers),
    refused: (endpoint, limit, mode) => refused.labels(endpoint, limit, mode).inc(),
    uncounted: (times) => uncounted.inc(times),
  };
}

const BREAKER_NUMBERS: Readonly<Record<BreakerState, number>> = { closed: 0, half_open: 1, open: 2 };

/** The api: the breakers of the entry. */
export function createBreakerMetrics(registry: Registry): BreakerMetrics {
  const registers = [registry];
  const labelNames = ['dependency'];
  const state = new Gauge({
    name: 'seckill_admission_breaker',
    help: 'The breaker of this process around a dependency, by its own experience: 0 closed, 1 half open, 2 open.',
    ...{ labelNames, registers },
  });
  const quorum = new Gauge({
    name: 'seckill_admission_breaker_quorum',
    help: '1 while so many processes have theirs open that it is open for all.',
    ...{ labelNames, registers },
  });
  const refused = new Counter({
    name: 'seckill_admission_breaker_refusals_total',
    help: 'Times that a breaker asked for less of an answer, or would have (dry_run).',
    ...{ labelNames: [...labelNames, 'mode'], registers },
  });
  for (const dependency of ['redis', 'rocketmq', 'mysql']) {
    state.labels(dependency).set(BREAKER_NUMBERS.closed);
    quorum.labels(dependency).set(0);
  }
  return {
    breakerMoved: (dependency, to) => state.labels(dependency).set(BREAKER_NUMBERS[to]),
    breakerRefused: (dependency, dryRun) => refused.labels(dependency, dryRun ? 'dry_run' : 'on').inc(),
    breakerQuorum: (dependency, open) => quorum.labels(dependency).set(open ? 1 : 0),
  };
}

/** The api: the degradation. */
export function createDegradeMetrics(registry: Registry): DegradeMetrics {
  const degraded = new Counter({
    name: 'seckill_admission_degraded_total',
    help: 'Requests that were ruled to get less than the full answer, or would have been (dry_run).',
    labelNames: ['endpoint', 'level', 'mode'],
    registers: [registry],
  });
  return {
    degraded: (endpoint, level, dryRun) => degraded.labels(endpoint, level, dryRun ? 'dry_run' : 'on').inc(),
  };
}

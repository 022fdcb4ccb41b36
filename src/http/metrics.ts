import type { Registry } from 'prom-client';
import { metricMakers } from '../core/metric-makers.js';
import { AnswerTimes, registerTimes } from './answer-times.js';
import { Tally } from './tally.js';

/** The parts of the API that are counted separately. They contain no ids, whose number is unlimited. */
export type HttpRoute =
  | 'purchase'
  | 'purchase_status'
  | 'purchase_events'
  | 'purchase_token'
  | 'queue'
  | 'sale'
  | 'order'
  | 'payment'
  | 'admin'
  | 'page'
  | 'preflight'
  | 'probe'
  | 'other';

export type AnswerClass = 'ok' | 'refused' | 'failed';

/**
 * Creates the metrics of the API. Counting an answer costs a few nanoseconds, because the registry fetches the figures
 * only when it collects.
 */
export function createHttpMetrics(registry: Registry) {
  const { counter } = metricMakers(registry);
  const answers = new Tally(
    registry,
    'seckill_http_answers_total',
    'Answers by route and code: an outcome, a status or a problem code.',
    ['route', 'code'],
  );
  const times = new Map<string, AnswerTimes>();
  registerTimes(registry, times);
  // Creates the series for objectives and alerts at the start: a series that appears only with its first value has no
  // rate for that value.
  for (const code of ['accepted', 'sold_out', 'refused_by_store', 'unavailable', 'outcome_unknown', 'internal']) {
    answers.bind(['purchase', code]);
  }
  times.set('purchase ok', new AnswerTimes({ route: 'purchase', class: 'ok' }));
  const unlogged = counter(
    'seckill_access_log_skipped_total',
    'Answers left out of the access log, because there were too many in a second or the file was too slow.',
  );
  const dropped = counter(
    'seckill_http_connections_dropped_total',
    'Connections closed because too many were open, and requests dropped because a client sent too many at once.',
  );
  return {
    /** Binds a counter. The hot path binds each pair once, then calls the returned function for each answer. */
    answered: (route: HttpRoute, code: string): (() => void) => answers.bind([route, code]),
    /** Binds the histogram of the answer times. */
    took(route: HttpRoute, answerClass: AnswerClass): (tookMs: number) => void {
      const key = `${route} ${answerClass}`;
      const found = times.get(key) ?? new AnswerTimes({ route, class: answerClass });
      times.set(key, found);
      return (tookMs) => found.observe(tookMs);
    },
    connectionDropped: (): void => dropped.inc(),
    notLogged: (lines: number): void => unlogged.inc(lines),
  };
}

export type HttpMetrics = ReturnType<typeof createHttpMetrics>;

/** Creates the metrics about the keys of identity providers. */
export function createIdentityMetrics(registry: Registry) {
  const { counter, gauge } = metricMakers(registry);
  const reads = counter('seckill_jwks_reads_total', 'Attempts to read the keys of an issuer, by result.', [
    'issuer',
    'result',
  ]);
  const keys = gauge('seckill_jwks_keys', 'Number of keys of an issuer in use. 0: none were ever read.', ['issuer']);
  return {
    keysRead: (issuer: string, known: number): void => {
      reads.labels(issuer, 'read').inc();
      keys.labels(issuer).set(known);
    },
    keysNotRead: (issuer: string): void => reads.labels(issuer, 'failed').inc(),
  };
}

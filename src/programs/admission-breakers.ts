import { randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import { BOARD_TIMES, SharedBreakers } from '../admission/breaker/shared-breakers.js';
import { type Body, type ReadEndpoint, DegradedReads, FallbackCache } from '../admission/degrade/degraded-reads.js';
import { Degrade, DegradeLayer } from '../admission/degrade/degrade.js';
import type { Layer } from '../admission/layer.js';
import type { RuleSet } from '../admission/rules/rule-set.js';
import type { HttpServices } from '../http/services.js';
import { createBreakerMetrics, createDegradeMetrics } from './admission-metrics.js';
import type { Log } from '../core/ports/log.js';
import { createBreakerStore } from '../redis/breaker-store.js';
import type { RedisConnection } from '../redis/connection.js';
import { steadyClock } from './system-clock.js';
import { withBreakers, type WithBreakers } from './with-breakers.js';

/** Old answers kept of each endpoint; with half a kB each that is some MB, whoever asks. */
const ANSWERS_MAX = 5000;

export interface GuardParts {
  /** Read at each call. */
  readonly rules: () => Pick<RuleSet, 'breaker' | 'degrade'>;
  readonly redis: RedisConnection;
  readonly registry: Registry;
  readonly log: Log;
  /** Told of what nobody foresaw. */
  readonly fail: (error: unknown) => void;
}

/** Breakers and degradation of an api, in the state that the other processes are in. */
export interface OpenGuard {
  readonly layer: Layer;
  readonly services: Pick<HttpServices, 'degrade' | 'reads'>;
  readonly watched: WithBreakers;
  /** Takes the vote of this process back. Never rejects. */
  close(): Promise<void>;
}

/** Never rejects for want of a board: then this process goes by its own experience. */
export async function openGuard({ rules, redis, registry, log, fail }: GuardParts): Promise<OpenGuard> {
  const breakers = new SharedBreakers(
    {
      ...{ rules: () => rules().breaker, board: createBreakerStore(redis), metrics: createBreakerMetrics(registry) },
      ...{ clock: steadyClock, random: Math.random, log },
    },
    { processId: randomUUID(), ...BOARD_TIMES },
  );
  await breakers.runOnce();
  const stop = new AbortController();
  const looking = breakers.run(stop.signal).catch(fail);
  const degrade = new Degrade({
    rules: () => rules().degrade,
    refuses: (dependency) => breakers.refuses(dependency),
    metrics: createDegradeMetrics(registry),
  });
  return {
    layer: new DegradeLayer(degrade),
    services: { degrade, reads: degradedReads(() => rules().degrade.cache) },
    watched: withBreakers(breakers),
    async close(): Promise<void> {
      stop.abort();
      await looking;
    },
  };
}

/** One cache each: the source of one endpoint may be well while that of another is not. */
function degradedReads(rules: () => RuleSet['degrade']['cache']): HttpServices['reads'] {
  const reads = (endpoint: ReadEndpoint): DegradedReads =>
    new DegradedReads(endpoint, new FallbackCache<Body>({ rules, clock: steadyClock, entriesMax: ANSWERS_MAX }));
  return { status: reads('status'), sale: reads('sale'), order: reads('order') };
}

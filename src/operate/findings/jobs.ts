import { randomUUID } from 'node:crypto';
import type { Registry } from 'prom-client';
import type { Config } from '../../core/config/schema.js';
import type { Job } from '../../core/job.js';
import { metricMakers } from '../../core/metric-makers.js';
import type { Clock } from '../../core/ports/clock.js';
import type { Log } from '../../core/ports/log.js';
import { createJobLeases } from '../../mysql/job-leases.js';
import type { MysqlPool } from '../../mysql/pool.js';
import { readMysqlClock } from '../../mysql/read-facts.js';
import { createWitnessStore } from '../../mysql/witness-store.js';
import { actionOf } from './follows.js';
import { resolveFinding } from './resolve.js';

export const RESOLVE_EVERY_MS = 5000;
/** Longer than the counts of a run take. `resolve` bounds each count. */
const LEASE_MS = 60_000;
/** Findings per run. */
const FINDINGS_MAX = 20;
/** A person who repairs an order by hand may need several transactions. */
const WAIT_MS = 60_000;
/** Findings that stayed open are judged again after this time. */
const AGAIN_MS = 600_000;
/** A witness that is further behind may not know yet what else was done. It stores its position every 10 s. */
const BEHIND_MAX_MS = 30_000;

interface Keeper {
  readonly mysql: MysqlPool;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
}

/** Counts what WITNESS=act does. */
export const createActionMetric = (registry: Registry) =>
  metricMakers(registry).counter(
    'seckill_witness_actions_total',
    'Findings on which a keeper acted (WITNESS=act), by action and result: resolved, person, failed, closed.',
    ['action', 'result'],
  );

/** Acts on open findings, oldest first. One keeper does it for all. Returns null unless `WITNESS` is `act`. */
export function openResolveJob({ keeper }: Config<'keeper'>, parts: Keeper, waitMs = WAIT_MS): Job | null {
  if (keeper.witness !== 'act') return null;
  const { mysql, registry, clock, log } = parts;
  const [name, owner] = ['resolve-findings', randomUUID()];
  const request = { actor: 'witness', dryRun: false, outboxKeepMs: keeper.outboxKeepMs };
  const [leases, store, actions] = [createJobLeases(mysql), createWitnessStore(mysql), createActionMetric(registry)];
  let [after, beganAtMs] = ['0', clock.monotonicMs()];
  return {
    name,
    async runOnce(): Promise<'idle' | void> {
      if (!(await leases.hold(name, owner, LEASE_MS))) return 'idle';
      const found = await store.list({ state: 'open' }, { after, max: FINDINGS_MAX });
      // Only at the end of the list, because thousands of findings that need a person take longer than AGAIN_MS.
      if (found.length < FINDINGS_MAX && clock.monotonicMs() - beganAtMs > AGAIN_MS) {
        [after, beganAtMs] = ['0', clock.monotonicMs()];
        return;
      }
      if (found.length === 0) return 'idle';
      const nowMs = await readMysqlClock(mysql);
      const read = await store.position();
      if (read === null || nowMs - read.readToMs > BEHIND_MAX_MS) return;
      for (const finding of found) {
        const { findingId, committedAtMs } = finding;
        // A time in the future (SET TIMESTAMP, or a clock that was set back) must not hold up the findings behind it.
        const isPossible = committedAtMs <= nowMs + WAIT_MS;
        if (isPossible && committedAtMs > nowMs - waitMs) return;
        after = findingId; // before, so that a finding that fails does not hold up the others
        if (!isPossible || actionOf(finding) === 'person') continue;
        const resolved = await resolveFinding(mysql, clock, findingId, request);
        if (resolved === null) continue;
        const { outcome, action, note } = resolved;
        actions.inc({ action, result: outcome });
        if (outcome === 'resolved') log.warn({ findingId, action, note }, 'the witness resolved a finding');
        if (outcome === 'failed') log.error({ findingId, action, note }, 'the witness could not resolve a finding');
      }
    },
  };
}

import type { JobLeases } from '../core/ports/job-leases.js';
import { execute, inMs, knex, waitOver } from './knex.js';
import type { MysqlPool } from './pool.js';

const LEASE_MAX_MS = 60_000;

/** Leases of keeper jobs: one row per job, which is never removed. The clock of MySQL ends a lease. */
export function createJobLeases(pool: MysqlPool): JobLeases {
  return {
    async hold(job, owner, leaseMs) {
      const held = { owner, leased_until: inMs(leaseMs) };
      const ours = knex('job_leases')
        .where({ job })
        .where((free) => free.where({ owner }).orWhereRaw(waitOver('leased_until', LEASE_MAX_MS)));
      if ((await execute(pool, ours.update(held))).affectedRows > 0) return true;
      const first = knex('job_leases')
        .insert({ job, ...held })
        .onConflict()
        .ignore();
      return (await execute(pool, first)).affectedRows > 0;
    },
  };
}

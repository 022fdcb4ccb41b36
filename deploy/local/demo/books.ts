import { setTimeout as sleep } from 'node:timers/promises';
import { openReconcile } from '../../../src/operate/reconcile/services.js';
import { loadConfig, type Environment } from '../../../src/core/config/load.js';
import { withConnections } from '../../../src/process/connections.js';
import { createLog } from '../../../src/process/telemetry.js';

/** The result of `seckill reconcile`. */
export interface Books {
  /** `match`: Redis and MySQL agree on every sale, purchase and unit. */
  readonly outcome: string;
  readonly salesCompared: number;
  readonly salesFailed: number;
  /** Findings by kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Purchases that were not judged: in transit, or dead letters that wait for an operator. */
  readonly undecided: number;
}

/** Younger purchases are in transit and are not compared. No more purchases arrive, so that soon applies to none. */
const SAFE_AGE_MS = 1_000;
/** Time to write the last orders and to return their units. */
const MATCH_WITHIN_MS = 60_000;
const AGAIN_MS = 2_000;

/**
 * Compares Redis and MySQL without repairing.
 * @returns as soon as everything matches, or after a minute with the differences
 * @throws OperationalError when Redis or MySQL does not answer
 */
export async function checkBooks(env: Environment, actor: string): Promise<Books> {
  const sections = ['mysql', 'redis', 'rocketmq', 'brokerAccess', 'messages', 'reconcile'] as const;
  // old markers, which traffic removes sooner than usual, are not a difference
  const looked = { TEST_OVERRIDES: 'on', RECONCILE_SAFE_AGE_MS: String(SAFE_AGE_MS), MARKER_LIFE_MS: undefined };
  const config = loadConfig(sections, { ...env, ...looked });
  return withConnections(config, createLog('demo', 'error'), async (connections) => {
    const { reconcile } = await openReconcile(connections);
    const untilMs = performance.now() + MATCH_WITHIN_MS;
    for (;;) {
      let undecided = 0;
      const { outcome, salesCompared, salesFailed, counts } = await reconcile.run(
        { apply: false, waitMs: 0, actor },
        (sale) => {
          if (sale.outcome !== 'compared') return;
          const { young, waiting, parked, moving } = sale.report.figures;
          undecided += young + waiting + parked + moving;
        },
      );
      const isDone = outcome === 'match' && undecided === 0;
      if (isDone || performance.now() > untilMs) return { outcome, salesCompared, salesFailed, counts, undecided };
      await sleep(AGAIN_MS);
    }
  });
}

import { setTimeout as sleep } from 'node:timers/promises';
import { openReconcile } from '../../../src/operate/reconcile/services.js';
import { loadConfig, type Environment } from '../../../src/core/config/load.js';
import { withConnections } from '../../../src/process/connections.js';
import { createLog } from '../../../src/process/telemetry.js';

/** The result of `seckill reconcile`. */
export interface Books {
  /** `match`: Redis and MySQL agree on every sale, purchase and unit. `partly`: nothing differs, but not all was compared. */
  readonly outcome: string;
  readonly salesCompared: number;
  readonly salesFailed: number;
  /** Sales that another run, such as the keeper's, was comparing. */
  readonly salesTaken: number;
  /** Ended sales that Redis no longer has: only their orders were compared. */
  readonly salesGone: number;
  /** Findings by kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Purchases that were not judged: in transit, or dead letters that wait for an operator. */
  readonly undecided: number;
}

/** An ended sale that Redis has lost in a restart is no difference. */
export const areRight = ({ outcome, salesFailed, salesTaken, undecided }: Books): boolean =>
  (outcome === 'match' || outcome === 'partly') && salesFailed === 0 && salesTaken === 0 && undecided === 0;

/** Younger purchases are in transit and not compared. At the end, no purchase stays young for long. */
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
  // traffic removes markers early, so old markers are not a difference
  const looked = { TEST_OVERRIDES: 'on', RECONCILE_SAFE_AGE_MS: String(SAFE_AGE_MS), MARKER_LIFE_MS: undefined };
  const config = loadConfig(sections, { ...env, ...looked });
  return withConnections(config, createLog('demo', 'error'), async (connections) => {
    const { reconcile } = await openReconcile(connections);
    const untilMs = performance.now() + MATCH_WITHIN_MS;
    for (;;) {
      let [undecided, salesGone] = [0, 0];
      const run = await reconcile.run({ apply: false, waitMs: 0, actor }, (sale) => {
        if (sale.outcome !== 'compared') return;
        const { young, waiting, parked, moving, unseen } = sale.report.figures;
        undecided += young + waiting + parked + moving + unseen;
        if (sale.report.more && unseen === 0) salesGone++;
      });
      const { outcome, salesCompared, salesFailed, salesTaken, counts } = run;
      const books = { outcome, salesCompared, salesFailed, salesTaken, salesGone, counts, undecided };
      if (areRight(books) || performance.now() > untilMs) return books;
      await sleep(AGAIN_MS);
    }
  });
}

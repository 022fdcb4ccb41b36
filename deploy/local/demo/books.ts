import { setTimeout as sleep } from 'node:timers/promises';
import { loadConfig, type Environment } from '../../../src/core/config/load.js';
import { withOperator } from '../../../src/programs/operator.js';
import { createLog } from '../../../src/programs/telemetry.js';

/** What `seckill reconcile` says in the end. */
export interface Books {
  /** `match`: Redis and MySQL agree, sale by sale, purchase by purchase and unit by unit. */
  readonly outcome: string;
  readonly salesCompared: number;
  readonly salesFailed: number;
  /** Findings by kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Purchases that were not judged: on their way, or dead letters that wait for a person. */
  readonly undecided: number;
}

/** What is younger is on its way and is not compared; nothing comes any more, so that is soon nothing. */
const SAFE_AGE_MS = 1_000;
/** Until the last orders are written and their units are back where they belong. */
const MATCH_WITHIN_MS = 60_000;
const AGAIN_MS = 2_000;

/**
 * Compares Redis and MySQL, and repairs nothing.
 * @returns as soon as they match in all; what differs after a minute is a difference
 * @throws OperationalError when one of them does not answer
 */
export async function checkBooks(env: Environment, actor: string): Promise<Books> {
  const sections = ['mysql', 'redis', 'rocketmq', 'brokerAccess', 'messages', 'reconcile'] as const;
  // old markers, which traffic removes sooner than usual, are no difference
  const looked = { TEST_OVERRIDES: 'on', RECONCILE_SAFE_AGE_MS: String(SAFE_AGE_MS), MARKER_LIFE_MS: undefined };
  const config = loadConfig(sections, { ...env, ...looked });
  return withOperator(config, createLog('demo', 'error'), async (operator) => {
    const admin = await operator.reconcile();
    const untilMs = performance.now() + MATCH_WITHIN_MS;
    for (;;) {
      let undecided = 0;
      const { outcome, salesCompared, salesFailed, counts } = await admin.run(
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

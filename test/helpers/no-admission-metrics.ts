import type { AdmissionMetrics } from '../../src/admission/metrics.js';

/** Counts nothing. */
export const noAdmissionMetrics: AdmissionMetrics = {
  refused: () => undefined,
  rulesTaken: () => undefined,
  rulesRefused: () => undefined,
  requestsCounted: () => undefined,
  limitRefused: () => undefined,
  uncounted: () => undefined,
  breakerMoved: () => undefined,
  breakerRefused: () => undefined,
  breakerQuorum: () => undefined,
  degraded: () => undefined,
};

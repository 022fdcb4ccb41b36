import type { AdmissionMetrics } from '../../src/admission/metrics.js';

/** Metrics of admission that count nothing. */
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

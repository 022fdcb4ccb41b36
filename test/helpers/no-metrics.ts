import type { AdmissionMetrics } from '../../src/admission/metrics.js';
import type { RecoveryMetrics } from '../../src/recovery/metrics.js';

// Metrics that count nothing. A test replaces the functions under test.

export const noAdmissionMetrics: AdmissionMetrics = {
  refused: () => undefined,
  rulesTaken: () => undefined,
  rulesRefused: () => undefined,
  canaryAnswered: () => undefined,
  requestsCounted: () => undefined,
  limitRefused: () => undefined,
  uncounted: () => undefined,
  breakerMoved: () => undefined,
  breakerRefused: () => undefined,
  breakerQuorum: () => undefined,
  degraded: () => undefined,
};

export const noRecoveryMetrics: RecoveryMetrics = {
  redriven: () => undefined,
  markedLate: () => undefined,
  parked: () => undefined,
  deadLettersParked: () => undefined,
  pending: () => undefined,
  overdue: () => undefined,
  repairTried: () => undefined,
  salesInRepair: () => undefined,
  hotSaleResharded: () => undefined,
  reconciled: () => undefined,
  compensationJobs: () => undefined,
  saleRetired: () => undefined,
  ordersArchived: () => undefined,
  salesToArchive: () => undefined,
  redisMemory: () => undefined,
  messages: () => undefined,
};

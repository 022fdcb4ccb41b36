import type { BreakerRules } from './breaker-rules.js';

/** What speaks for trouble, as it was measured. */
export interface Signals {
  /** In the window. */
  readonly calls: number;
  readonly perSecond: number;
  /** What was learned; null while it says nothing yet. */
  readonly usualPerSecond: number | null;
  readonly failureShare: number;
  readonly p95Ms: number;
}

/** All signals as one number: 0 is no trouble, and from `openAt` on the breaker opens. */
export function scoreOf(signals: Signals, { callsMin, weights, rate, failures, latencyMs }: BreakerRules): number {
  if (signals.calls < callsMin) return 0;
  const { perSecond, usualPerSecond, failureShare, p95Ms } = signals;
  const crowd = usualPerSecond === null ? 0 : perSecond / Math.max(usualPerSecond, rate.floorPerSecond);
  return (
    weights.rate * along(rate.ramp, crowd) +
    weights.failures * along(failures, failureShare) +
    weights.latency * along(latencyMs, p95Ms)
  );
}

/** 0 up to `from`, 1 from `to` on. */
function along({ from, to }: { readonly from: number; readonly to: number }, value: number): number {
  return Math.min(1, Math.max(0, (value - from) / (to - from)));
}

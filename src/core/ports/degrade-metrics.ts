/** What the degradation tells the metrics. */
export interface DegradeMetrics {
  /** A request got less than the full answer, or would have. Endpoint and level are few words each. */
  degraded(endpoint: string, level: string, dryRun: boolean): void;
}

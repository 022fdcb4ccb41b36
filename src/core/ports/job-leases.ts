/** Leases of jobs that a single process does for all. */
export interface JobLeases {
  /**
   * Takes or renews the lease of a job. The lease of a dead owner becomes free after `leaseMs`.
   * @param owner unique per process
   * @returns whether `owner` now holds the lease
   * @throws OperationalError mysql
   */
  hold(job: string, owner: string, leaseMs: number): Promise<boolean>;
}

/** Leases of jobs that one process does on behalf of all. */
export interface JobLeases {
  /**
   * Takes or renews the lease. If the owner dies, the lease becomes free after `leaseMs`.
   * @param owner unique per process
   * @returns whether `owner` now holds it
   * @throws OperationalError mysql
   */
  hold(job: string, owner: string, leaseMs: number): Promise<boolean>;
}

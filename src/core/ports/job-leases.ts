/** Jobs that one process does for all: the one that holds the lease. */
export interface JobLeases {
  /**
   * Takes the lease of a job, or keeps it. That of an owner who died is free after `leaseMs`.
   * @param owner unique per process
   * @returns whether `owner` has it now
   * @throws OperationalError mysql
   */
  hold(job: string, owner: string, leaseMs: number): Promise<boolean>;
}

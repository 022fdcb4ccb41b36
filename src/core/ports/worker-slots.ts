/** The right to mint order ids with one of 256 slots, held for a while. */
export interface WorkerSlotLease {
  readonly slot: number;
  /** Unix ms on this process's clock until which ids may be minted; moves on with every renewal. */
  readonly validUntilMs: number;
}

/** Hands out slots so that no two processes mint the same ids. */
export interface WorkerSlots {
  /**
   * Takes a free slot, or keeps the one this owner already has.
   * @param owner unique per process
   * @throws OperationalError mysql, also when all 256 slots are taken
   */
  acquire(owner: string, leaseMs: number): Promise<WorkerSlotLease>;

  /** @throws OperationalError mysql */
  free(owner: string): Promise<void>;
}

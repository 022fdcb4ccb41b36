/** A sale with many purchase attempts. */
export interface HotSale {
  readonly saleId: string;
  /** Purchase attempts per second, averaged over the last ten seconds. A lower bound. */
  readonly perSecond: number;
}

/** Collects the busiest sales of every api, so that a reader can add up the reports. */
export interface HotSaleStore {
  /**
   * Replaces the report of this process. Safe to repeat.
   * @param sales the busiest sales of the process; a small number of them
   * @param lifeMs if no new report arrives within this time, the report no longer counts
   * @throws OperationalError redis
   */
  report(processId: string, sales: readonly HotSale[], lifeMs: number): Promise<void>;

  /**
   * Removes the report when the process ends. Does nothing if there is no report.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;

  /**
   * Returns the valid reports, at most 1000. A report that cannot be read is left out.
   * @throws OperationalError redis
   */
  reports(): Promise<readonly (readonly HotSale[])[]>;
}

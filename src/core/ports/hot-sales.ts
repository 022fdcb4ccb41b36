/** A sale with many purchase attempts. */
export interface HotSale {
  readonly saleId: string;
  /** Purchase attempts per second, averaged over the last ten seconds. A lower bound. */
  readonly perSecond: number;
}

/** Collects the busiest sales of every api for a reader to add up. Methods throw OperationalError redis. */
export interface HotSaleStore {
  /**
   * Replaces the report of this process. Safe to repeat.
   * @param sales its busiest ones, only a few
   * @param lifeMs without a new report, it no longer counts after this time
   */
  report(processId: string, sales: readonly HotSale[], lifeMs: number): Promise<void>;

  /** Removes the report when the process ends. Does nothing without a report. */
  withdraw(processId: string): Promise<void>;

  /** Returns valid reports, at most 1000. Omits unreadable ones. */
  reports(): Promise<readonly (readonly HotSale[])[]>;
}

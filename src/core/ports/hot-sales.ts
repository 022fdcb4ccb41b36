/** A sale with many attempts to buy. */
export interface HotSale {
  readonly saleId: string;
  /** At least so many, over the last ten seconds. */
  readonly perSecond: number;
}

/** Where every api reports which sales its buyers want, so that others can add the reports up. */
export interface HotSaleStore {
  /**
   * Writes the report of this process in place of its last one. Safe to repeat.
   * @param sales its busiest ones, some at most
   * @param lifeMs after so long without another report this one does not count any more
   * @throws OperationalError redis
   */
  report(processId: string, sales: readonly HotSale[], lifeMs: number): Promise<void>;

  /**
   * Removes the report: the process ends. Nothing happens when there is none.
   * @throws OperationalError redis
   */
  withdraw(processId: string): Promise<void>;

  /**
   * The reports that count, at most 1000; one that cannot be read is left out.
   * @throws OperationalError redis
   */
  reports(): Promise<readonly (readonly HotSale[])[]>;
}

import { OperationalError, SaleInRepair } from './errors.js';

/** Number of buckets that one run works on at the same time. */
const AT_ONCE = 8;

/**
 * Collects the faults of single buckets during one run of a job. A Redis server that does not answer must not stop the
 * work on others: the run fails after all other work. Any other fault concerns every bucket and ends the run at once.
 */
export class BucketFaults {
  #first: OperationalError | null = null;
  #count = 0;

  /** @throws any error that is not a fault of Redis */
  add(error: unknown): void {
    if (!(error instanceof OperationalError) || error.dependency !== 'redis') throw error;
    this.#keep(error);
    this.#count++;
  }

  addAll(others: BucketFaults): void {
    if (others.#first !== null) this.#keep(others.#first);
    this.#count += others.#count;
  }

  /** Keeps the first fault. A fault of a broken bucket replaces a fault of a bucket that is being rebuilt. */
  #keep(fault: OperationalError): void {
    if (this.#first === null || (this.#first instanceof SaleInRepair && !(fault instanceof SaleInRepair))) {
      this.#first = fault;
    }
  }

  get isEmpty(): boolean {
    return this.#first === null;
  }

  /**
   * Works on several items at a time, and continues if some fail.
   * @throws the first error that is not a fault of Redis, once all started items have ended
   */
  async forEach<T>(items: readonly T[], work: (item: T) => Promise<void>, atOnce = AT_ONCE): Promise<void> {
    let next = 0;
    let error: unknown = null;
    const worker = async (): Promise<void> => {
      while (next < items.length && error === null) {
        const item = items[next++] as T;
        try {
          await work(item).catch((fault: unknown) => this.add(fault));
        } catch (other) {
          error ??= other;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
    if (error !== null) throw error;
  }

  /** @throws OperationalError redis */
  throwIfAny(): void {
    if (this.#first === null) return;
    if (this.#count === 1 || this.#first instanceof SaleInRepair) throw this.#first;
    const { message, retryable } = this.#first;
    throw new OperationalError(
      'redis',
      `${message}; ${this.#count} buckets failed in this way; all others were handled`,
      {
        retryable,
        cause: this.#first,
      },
    );
  }
}

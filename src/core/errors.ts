/** Our dependencies, by their names in logs, metrics and `/readyz`. */
export type Dependency = 'redis' | 'rocketmq' | 'mysql';

/**
 * The failure of a dependency. Adapters throw it, and so does code that sums up faults. `retryable` says whether the
 * same call may succeed later. A refusal (sold out, limit reached …) is never thrown: it is an outcome.
 */
export class OperationalError extends Error {
  readonly dependency: Dependency;
  readonly retryable: boolean;
  /** Private, so that no log prints it with the error. */
  readonly #serverMessage: string | undefined;

  /** @param options `serverMessage`: name and message of the error of the dependency; may quote data of a buyer */
  constructor(
    dependency: Dependency,
    message: string,
    options: { retryable: boolean; cause?: unknown; serverMessage?: string | undefined },
  ) {
    super(message, { cause: options.cause });
    this.name = 'OperationalError';
    this.dependency = dependency;
    this.retryable = options.retryable;
    this.#serverMessage = options.serverMessage;
  }

  /** The error of the dependency, for a dead letter, which has the whole message anyway. Never for a log. */
  get serverMessage(): string {
    return this.#serverMessage ?? this.message;
  }
}

/** A refusal by Redis because the sale is being rebuilt. Takes some seconds, is intended, and nothing is broken. */
export class SaleInRepair extends OperationalError {
  constructor(what: string) {
    super('redis', `${what}: the sale is being rebuilt in Redis`, { retryable: true });
  }
}

/**
 * A mistake in our code. Api and worker log it, drain and exit. The keeper logs it and runs the job again, since its
 * other jobs must continue (`core/job.ts`). Code that serves only people logs it and continues too: a console must not
 * end a sale.
 */
export class Bug extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Bug';
  }
}

/** Ends a switch over a union: a missing case does not compile. */
export function assertNever(value: never): never {
  throw new Bug(`unexpected value: ${JSON.stringify(value)}`);
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

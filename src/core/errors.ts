/** The systems we depend on, as they are named in logs, metrics and `/readyz`. */
export type Dependency = 'redis' | 'rocketmq' | 'mysql';

/**
 * A dependency failed. Thrown by adapters, and by what sums up their faults; `retryable` says whether the same call may
 * succeed later.
 * A refusal (sold out, limit reached …) is never thrown: it is an outcome.
 */
export class OperationalError extends Error {
  readonly dependency: Dependency;
  readonly retryable: boolean;
  /** Private, so that no log prints it with the error. */
  readonly #serverMessage: string | undefined;

  /** @param options `serverMessage`: the error as the dependency gave it, name and message; it may quote what a buyer sent */
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

  /** The error as the dependency gave it: for a dead letter, which has the whole message anyway, and never for a log. */
  get serverMessage(): string {
    return this.#serverMessage ?? this.message;
  }
}

/** Redis refused because the sale is being rebuilt: for some seconds, on purpose, and nothing is broken. */
export class SaleInRepair extends OperationalError {
  constructor(what: string) {
    super('redis', `${what}: the sale is being rebuilt in Redis`, { retryable: true });
  }
}

/**
 * A mistake in our code. Api and worker log it, drain and exit. The keeper logs it and runs the job again, since its other
 * jobs must go on (`core/job.ts`). So does what is for people only: a console must not end a sale.
 */
export class Bug extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Bug';
  }
}

/** Ends a switch over a union: a word without a case does not compile. */
export function assertNever(value: never): never {
  throw new Bug(`unexpected value: ${JSON.stringify(value)}`);
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

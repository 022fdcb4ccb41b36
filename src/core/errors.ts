/** Our dependencies, by their names in logs, metrics and `/readyz`. */
export type Dependency = 'redis' | 'rocketmq' | 'mysql';

/**
 * A dependency failed. `retryable`: the same call may succeed later. A refusal (sold out, limit reached …) is never
 * thrown: it is a returned outcome.
 */
export class OperationalError extends Error {
  readonly dependency: Dependency;
  readonly retryable: boolean;
  /** Private, so no log prints it with the error. */
  readonly #serverMessage: string | undefined;

  /** @param options `serverMessage`: name and message of the dependency's error, which may quote a buyer's data */
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

  /** The error of the dependency. Only for a dead letter, which holds the whole message anyway, and never for a log. */
  get serverMessage(): string {
    return this.#serverMessage ?? this.message;
  }
}

/** Redis refuses while the sale is rebuilt, for some seconds. Nothing is broken. */
export class SaleInRepair extends OperationalError {
  constructor(what: string) {
    super('redis', `${what}: the sale is being rebuilt in Redis`, { retryable: true });
  }
}

/**
 * A mistake in our code. An api or worker logs it, drains and exits. A keeper logs it and runs the job again, because
 * its other jobs must continue (`core/job.ts`). Code for people, such as the console, logs it and continues: it must
 * not end a sale.
 */
export class Bug extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Bug';
  }
}

/** Ends a switch over a union, so that the code does not compile if a case is missing. */
export function assertNever(value: never): never {
  throw new Bug(`unexpected value: ${JSON.stringify(value)}`);
}

export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

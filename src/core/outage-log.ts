import type { Log } from './ports/log.js';

/** Logs the first of many failures in a row, and their end. */
export class OutageLog {
  readonly #log: Log;
  readonly #messages: { readonly begins: string; readonly ends: string };
  readonly #fields: object;
  #failures = 0;

  /** @param fields of both lines, beside their own */
  constructor(log: Log, messages: { readonly begins: string; readonly ends: string }, fields: object = {}) {
    this.#log = log;
    this.#messages = messages;
    this.#fields = fields;
  }

  get isOut(): boolean {
    return this.#failures > 0;
  }

  failed(err: unknown): void {
    if (this.#failures++ === 0) this.#log.warn({ err, ...this.#fields }, this.#messages.begins);
  }

  end(): void {
    if (this.isOut) this.#log.info({ failures: this.#failures, ...this.#fields }, this.#messages.ends);
    this.#failures = 0;
  }
}

import { OperationalError, SaleInRepair } from './errors.js';
import type { Log } from './ports/log.js';

/**
 * Logs the first of many failures in a row, the first failure of each other kind, and the end with the number of
 * failures. An outage must not fill the disk.
 */
export class OutageLog {
  readonly #log: Log;
  readonly #messages: { readonly begins: string; readonly ends: string };
  readonly #fields: object;
  readonly #calmMs: number;
  readonly #saidKinds = new Set<string>();
  #failures = 0;
  #failedAtMs = 0;

  /**
   * @param fields of both lines, beside their own
   * @param calmMs how long nothing may fail before a success ends the outage. Concurrent calls need it, because some
   *   succeed in an outage of one server
   */
  constructor(log: Log, messages: { readonly begins: string; readonly ends: string }, fields: object = {}, calmMs = 0) {
    this.#log = log;
    this.#messages = messages;
    this.#fields = fields;
    this.#calmMs = calmMs;
  }

  get isOut(): boolean {
    return this.#failures > 0;
  }

  /** @param fields of this failure alone */
  failed(err: unknown, fields: object = {}): void {
    this.#failures++;
    this.#failedAtMs = performance.now();
    const kind = kindOf(err);
    if (this.#saidKinds.has(kind)) return;
    this.#saidKinds.add(kind);
    const named = { ...this.#fields, ...fields };
    if (err instanceof SaleInRepair) this.#log.info({ error: err.message, ...named }, this.#messages.begins);
    else this.#log.warn({ err, ...named }, this.#messages.begins);
  }

  end(): void {
    if (!this.isOut || performance.now() - this.#failedAtMs < this.#calmMs) return;
    this.#log.info({ failures: this.#failures, ...this.#fields }, this.#messages.ends);
    this.#failures = 0;
    this.#saidKinds.clear();
  }
}

/** Returns one of few names, so that the lines of an outage stay few. */
function kindOf(err: unknown): string {
  if (err instanceof SaleInRepair) return 'repair';
  if (err instanceof OperationalError) return err.dependency;
  return err instanceof Error ? err.name : '';
}

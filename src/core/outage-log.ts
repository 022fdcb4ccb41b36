import { OperationalError, SaleInRepair } from './errors.js';
import type { Log } from './ports/log.js';

/**
 * Logs the first failure in a row, the first of each further kind, and the end of the outage with the number of
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
   * @param fields added to both lines
   * @param calmMs time without a failure before a success ends the outage. While one of several servers is down, some
   * concurrent calls succeed
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

  /** @param fields added to this line only */
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

/** Returns a name. There must be few names, because an outage logs a line for each. */
function kindOf(err: unknown): string {
  if (err instanceof SaleInRepair) return 'repair';
  if (err instanceof OperationalError) return err.dependency;
  return err instanceof Error ? err.name : '';
}

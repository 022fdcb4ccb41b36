/** A failure counts for so long: without calls nothing would ever clear it, and an unready process gets no calls. */
const FAILURE_COUNTS_MS = 10_000;

/** When a channel last heard from its broker, and what went wrong last. Times in Unix ms. */
export class ChannelHealth {
  lastSuccessAtMs: number | null = null;
  lastFailureAtMs: number | null = null;
  lastError: string | null = null;
  #lastCallFailed = false;

  succeeded(): void {
    this.lastSuccessAtMs = Date.now();
    this.#lastCallFailed = false;
  }

  failed(error: unknown): void {
    this.lastFailureAtMs = Date.now();
    this.lastError = error instanceof Error ? error.message : String(error);
    this.#lastCallFailed = true;
  }

  /** True when the last call failed, and that not long ago. */
  isFailing(): boolean {
    return this.#lastCallFailed && Date.now() - (this.lastFailureAtMs ?? 0) < FAILURE_COUNTS_MS;
  }
}

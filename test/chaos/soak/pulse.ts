/** When buyers last heard what they came for: for each sale, the time at which they had sent the purchase. */
export class Pulse {
  readonly #yes = new Map<string, number>();
  readonly #ordered = new Map<string, number>();

  /** @param sentMs before its first try left */
  heardYes(saleId: string, sentMs: number): void {
    this.#yes.set(saleId, Math.max(sentMs, this.#yes.get(saleId) ?? 0));
  }

  sawOrder(saleId: string, sentMs: number): void {
    this.#ordered.set(saleId, Math.max(sentMs, this.#ordered.get(saleId) ?? 0));
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has been accepted. */
  yesSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#yes.get(saleId) ?? 0) > sinceMs);
  }

  /** True once a purchase of each sale that was sent after `sinceMs` has become an order. */
  ordersSince(sinceMs: number, saleIds: readonly string[]): boolean {
    return saleIds.every((saleId) => (this.#ordered.get(saleId) ?? 0) > sinceMs);
  }
}

/** Places for buyers who wait, limited in all and for each buyer, so that one buyer cannot take all of them. */
export class Places {
  readonly #max: number;
  readonly #perBuyerMax: number;
  /** Places taken, by buyer; buyers without any are not in it. */
  readonly #byBuyer = new Map<string, number>();
  #taken = 0;

  constructor({ max, perBuyerMax }: { readonly max: number; readonly perBuyerMax: number }) {
    this.#max = max;
    this.#perBuyerMax = perBuyerMax;
  }

  get taken(): number {
    return this.#taken;
  }

  /** @returns frees the place, once; null when there is none */
  take(userId: string): (() => void) | null {
    const own = this.#byBuyer.get(userId) ?? 0;
    if (this.#taken >= this.#max || own >= this.#perBuyerMax) return null;
    this.#taken++;
    this.#byBuyer.set(userId, own + 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#taken--;
      const left = (this.#byBuyer.get(userId) ?? 1) - 1;
      if (left > 0) this.#byBuyer.set(userId, left);
      else this.#byBuyer.delete(userId);
    };
  }
}

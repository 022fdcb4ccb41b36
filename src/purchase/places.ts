interface PlacesOptions {
  readonly max: number;
  readonly perBuyerMax: number;
  /** Left out: any number. */
  readonly perAddressMax?: number;
}

/** Places for buyers who wait, limited in all, for each buyer and for each address, so that none of them can take all. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #byBuyer = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /**
   * @param address what the address of the buyer counts as; null: it is not counted
   * @returns frees the place, once; null when there is none
   */
  take(userId: string, address: string | null = null): (() => void) | null {
    const { max, perBuyerMax, perAddressMax = Infinity } = this.#options;
    if (this.#taken >= max || (this.#byBuyer.get(userId) ?? 0) >= perBuyerMax) return null;
    if (address !== null && (this.#byAddress.get(address) ?? 0) >= perAddressMax) return null;
    this.#taken++;
    add(this.#byBuyer, userId, 1);
    if (address !== null) add(this.#byAddress, address, 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#taken--;
      add(this.#byBuyer, userId, -1);
      if (address !== null) add(this.#byAddress, address, -1);
    };
  }
}

/** Who has no place is not in it. */
function add(places: Map<string, number>, name: string, change: 1 | -1): void {
  const taken = (places.get(name) ?? 0) + change;
  if (taken > 0) places.set(name, taken);
  else places.delete(name);
}

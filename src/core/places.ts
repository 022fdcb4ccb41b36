/** The key under which an address is counted, and how many times the share of one address this key may use. */
export interface AddressShare {
  readonly key: string;
  readonly times: number;
}

interface PlacesOptions {
  readonly max: number;
  /** No limit if absent. */
  readonly perUserMax?: number;
  /** No limit if absent. */
  readonly perAddressMax?: number;
}

/** Limits concurrent work in total, per user and per address, so that no user or address can take all places. */
export class Places {
  readonly #options: PlacesOptions;
  readonly #byUser = new Map<string, number>();
  readonly #byAddress = new Map<string, number>();
  #taken = 0;

  constructor(options: PlacesOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  /**
   * @param userId null if users are not counted separately
   * @param shares of the user's address; empty if addresses are not counted
   * @returns frees the place (once), or null if none is free
   */
  take(userId: string | null = null, shares: readonly AddressShare[] = []): (() => void) | null {
    const { max, perUserMax = Infinity, perAddressMax = Infinity } = this.#options;
    if (this.#taken >= max || (userId !== null && (this.#byUser.get(userId) ?? 0) >= perUserMax)) return null;
    if (shares.some(({ key, times }) => (this.#byAddress.get(key) ?? 0) >= perAddressMax * times)) return null;
    this.#taken++;
    if (userId !== null) add(this.#byUser, userId, 1);
    for (const { key } of shares) add(this.#byAddress, key, 1);
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#taken--;
      if (userId !== null) add(this.#byUser, userId, -1);
      for (const { key } of shares) add(this.#byAddress, key, -1);
    };
  }
}

/** Changes a count. Removes the entry at 0. */
function add(places: Map<string, number>, name: string, change: 1 | -1): void {
  const taken = (places.get(name) ?? 0) + change;
  if (taken > 0) places.set(name, taken);
  else places.delete(name);
}

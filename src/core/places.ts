/** The key that an address is counted under, and its share as a multiple of the share of one address. */
export interface AddressShare {
  readonly key: string;
  readonly times: number;
}

interface PlacesOptions {
  readonly max: number;
  /** Absent: no limit. */
  readonly perUserMax?: number;
  /** Absent: no limit. */
  readonly perAddressMax?: number;
}

/**
 * A limited number of places for concurrent work: in all, for each user and for each address, so that no user or
 * address can take all.
 */
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
   * Takes a place.
   * @param userId null: users are not told apart
   * @param shares of the address of the user; empty: the address is not counted
   * @returns frees the place, once; null when no place is free
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

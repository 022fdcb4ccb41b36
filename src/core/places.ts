/** What an address is counted under, and how many times the share of one address that may have. */
export interface AddressShare {
  readonly key: string;
  readonly times: number;
}

interface PlacesOptions {
  readonly max: number;
  /** Left out: any number. */
  readonly perUserMax?: number;
  /** Left out: any number. */
  readonly perAddressMax?: number;
}

/**
 * Places for what may be under way at once, limited in all, for each user and for each address, so that none of them can take
 * all.
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
   * @param userId null: users are not told apart
   * @param shares what the address of the user counts as; empty: it is not counted
   * @returns frees the place, once; null when there is none
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

/** Who has no place is not in it. */
function add(places: Map<string, number>, name: string, change: 1 | -1): void {
  const taken = (places.get(name) ?? 0) + change;
  if (taken > 0) places.set(name, taken);
  else places.delete(name);
}

/** Counts what the layers of the entry refuse, or would refuse in a dry run. */
export interface EntryMeters {
  /**
   * @param layer `sign`, `queue` …
   * @param word why; never a user, a sale or a key
   */
  refused(layer: string, word: string, mode: 'dry_run' | 'on'): void;
}

/** For tests and tools that count nothing. */
export const noEntryMeters: EntryMeters = { refused: () => undefined };

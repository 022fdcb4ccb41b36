/** Stores texts that live as long as the tab, and therefore survive a reload of its page. */
export interface TabStorage {
  read(name: string): string | null;
  write(name: string, value: string): void;
  remove(name: string): void;
}

/** The methods of the browser's storage that are used here. */
export interface BrowserStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/**
 * Opens the storage of the tab. If the browser forbids storage, as in a frame of an untrusted page, or has no room
 * left, texts are kept in memory and live as long as the page.
 * @param storage throws if there is no storage
 */
export function openTabStorage(storage: () => BrowserStorage): TabStorage {
  /** Texts that could not be written. They are newer than the browser's texts under the same names. */
  const memory = new Map<string, string>();
  const tried = <T>(use: (storage: BrowserStorage) => T, otherwise: T): T => {
    try {
      return use(storage());
    } catch {
      return otherwise;
    }
  };
  const remove = (name: string): void => tried((kept) => kept.removeItem(name), undefined);
  return {
    read: (name) => memory.get(name) ?? tried((kept) => kept.getItem(name), null),
    write: (name, value) => {
      const isKept = tried((kept) => {
        kept.setItem(name, value);
        return true;
      }, false);
      if (isKept) return void memory.delete(name);
      memory.set(name, value);
      remove(name);
    },
    remove: (name) => {
      memory.delete(name);
      remove(name);
    },
  };
}

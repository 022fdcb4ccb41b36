/** Texts that live as long as the tab, also when its page is loaded again. */
export interface TabStorage {
  read(name: string): string | null;
  write(name: string, value: string): void;
  remove(name: string): void;
}

/** That of the browser, as far as it is used. */
export interface BrowserStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
}

/**
 * In memory where the browser forbids storage, as in a frame of a page that it does not trust, or has no room left: then they
 * live as long as the page.
 * @param storage throws where there is none
 */
export function openTabStorage(storage: () => BrowserStorage): TabStorage {
  /** What could not be written; it is newer than what the browser may have under the same name. */
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

/** Texts that live as long as the tab, also when its page is loaded again. */
export interface TabStorage {
  read(name: string): string | null;
  write(name: string, value: string): void;
  remove(name: string): void;
}

/** In memory where the browser forbids storage, as in a frame of a page that it does not trust: then they live as long as the page. */
export function openTabStorage(): TabStorage {
  const memory = new Map<string, string>();
  const whereAllowed = <T>(use: (storage: Storage) => T, otherwise: () => T): T => {
    try {
      return use(sessionStorage);
    } catch {
      return otherwise();
    }
  };
  return {
    read: (name) =>
      whereAllowed(
        (storage) => storage.getItem(name),
        () => memory.get(name) ?? null,
      ),
    write: (name, value) =>
      whereAllowed(
        (storage) => storage.setItem(name, value),
        () => void memory.set(name, value),
      ),
    remove: (name) =>
      whereAllowed(
        (storage) => storage.removeItem(name),
        () => void memory.delete(name),
      ),
  };
}

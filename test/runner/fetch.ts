import type { CommandName } from './commands.js';

/** Tools that commands need beside Node, a JDK, Maven and npm. Tests without their tool fail or skip. */
const FETCHES: Partial<Record<CommandName, () => Promise<unknown>>> = {
  pages: async () => (await import('../helpers/chromium.js')).fetchChromium(),
  more: async () => (await import('../helpers/nginx.js')).fetchNginx(),
  tools: async () => (await import('../deploy/tools.js')).fetchTools(),
};

/**
 * Starts to download what the commands need, in their order, so that no test waits for a registry.
 * @returns a promise to await before the first test of a command
 */
export function fetchToolsOf(names: readonly CommandName[]): ReadonlyMap<string, Promise<void>> {
  const fetched = new Map<string, Promise<void>>();
  let before = Promise.resolve();
  for (const name of names) {
    const fetchThem = FETCHES[name];
    if (fetchThem === undefined) continue;
    before = before.then(async () => {
      console.log(`\n== fetching the tools of ${name}`);
      await fetchThem().catch((error: unknown) => console.log(error instanceof Error ? error.message : String(error)));
    });
    fetched.set(name, before);
  }
  return fetched;
}

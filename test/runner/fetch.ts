import type { CommandName } from './commands.js';

/** What commands need beside Node, a JDK, Maven and npm. Tests that miss a tool fail or skip with the same sentence. */
const FETCHES: Partial<Record<CommandName, () => Promise<unknown>>> = {
  pages: async () => (await import('../helpers/chromium.js')).fetchChromium(),
  more: async () => (await import('../helpers/nginx.js')).fetchNginx(),
  tools: async () => {
    const { fetchTool } = await import('../helpers/prometheus-tools.js');
    for (const tool of ['prometheus', 'promtool', 'amtool'] as const) await fetchTool(tool);
  },
};

/** Downloads what a command needs before its first test, so that no test waits for a registry. */
export async function fetchToolsOf(name: CommandName): Promise<void> {
  const fetchThem = FETCHES[name];
  if (fetchThem === undefined) return;
  console.log(`\n== ${name}: fetching its tools`);
  await fetchThem().catch((error: unknown) => console.log(String(error instanceof Error ? error.message : error)));
}

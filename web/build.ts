import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

// Builds the pages into dist/web, where the API finds them: `npm run build:web`.

const folder = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The pages, and the address that serves each page. */
const PAGES = { buyer: '/s/', console: '/console/' } as const;

rmSync(folder('../dist/web'), { recursive: true, force: true });
for (const [page, base] of Object.entries(PAGES)) {
  await build({
    root: folder(page),
    base,
    configFile: false,
    logLevel: 'warn',
    build: {
      outDir: folder(`../dist/web/${page}`),
      emptyOutDir: false, // the folder was emptied above
      assetsInlineLimit: 0, // the content security policy allows no data: in scripts and styles
      modulePreload: false, // its polyfill is an inline script
      target: 'es2022',
      rolldownOptions: { checks: { bundlerTimings: false } }, // a busy machine does not mean that the pages are faulty
    },
  });
}

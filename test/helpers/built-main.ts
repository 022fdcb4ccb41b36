import { fileURLToPath } from 'node:url';

/** The command line, as `npm test` has built it before any test that starts a program. */
export const BUILT_MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/**
 * The folder of this package, with `lua`, `config` and `package.json`. `src/core` and the folder of each bundle are at
 * the same depth below it (build.mjs).
 */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);

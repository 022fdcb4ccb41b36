/**
 * The folder of this package, where `lua`, `config` and `package.json` are: as many steps up from `src/core` as from the folder of
 * each bundle (build.mjs).
 */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
